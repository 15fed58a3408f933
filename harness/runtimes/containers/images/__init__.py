"""Images: their content, on published bases or on Debian, and how they are built."""
