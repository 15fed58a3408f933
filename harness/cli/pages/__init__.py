"""Commands that present the content of a store: in a browser, or as a document."""
