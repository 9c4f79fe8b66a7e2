//! The Cluster port and MemoryCluster.
