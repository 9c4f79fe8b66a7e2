//! Finds, builds and starts etcd, kube-apiserver and friends.
