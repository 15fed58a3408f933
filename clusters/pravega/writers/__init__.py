"""Writers: plain events, transactions, and reads of whole keys."""
