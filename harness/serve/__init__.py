"""The store in the browser: who may read it, the list of its runs, and the pages."""
