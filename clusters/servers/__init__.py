"""Code that the clients of several real servers share: the path of one operation, and the stored form of values."""
