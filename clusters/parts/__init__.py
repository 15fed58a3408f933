"""Parts of machines that several designs share. They know no cluster, its words or its nodes."""
