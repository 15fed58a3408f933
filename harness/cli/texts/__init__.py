"""Text that commands write: pages about promises and contracts, and the template of `seamark new`."""
