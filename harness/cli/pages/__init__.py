"""The commands that show what a store holds, to whoever decides: in a browser, as a document."""
