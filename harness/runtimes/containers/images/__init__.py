"""Images: their content, on published bases or on Debian, and their builds."""
