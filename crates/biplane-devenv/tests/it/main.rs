//! The launcher against the real programs.

mod apiserver;
