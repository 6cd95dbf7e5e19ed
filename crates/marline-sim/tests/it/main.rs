//! Whole sessions over modelled links, in virtual time.
mod smoke;
