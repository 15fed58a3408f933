"""Where kernels run, in threads or on Spark, and how messages travel between them."""
