"""The logs of a server: the rows with the table log, the file logs, and the streams that lead there."""
