"""Regions: ranges of slots with a version, the commands that change them, and the tables in which nodes look them up.

Theory of operation. A region is split, or becomes a part of its left neighbour, by commands of its own log and of the
neighbour's: so all replicas change it at the same place in the log.
1. Of each slot the versions of the regions that own it rise, and each (region, version) is one range. A request names
   the version that it means, and is refused at any other (store/replica.py, invariant 5).
2. A split gives the new region a log of its own. Its first entry holds its range and its rows, and is decided from the
   beginning: a replica gets it by applying the split, or from the new region's leader, whichever comes first.
3. A merge has two steps. The right region is frozen by its own log: from there on its leader serves nothing, and its
   rows are final. Then the left region's log takes them in. The leader of the frozen region sends them until the left
   one has them; a replica is dropped when its store applies that, and its number is never used again.
4. The first region is never frozen. So regions cannot wait for each other in a ring.
5. Both steps end what depends on leading: captures subscribe again, and locks are scanned again, before a watermark
   moves.
6. A replica's safe timestamp after a merge is the least of both; what the leader published before the merge is dropped.
"""
