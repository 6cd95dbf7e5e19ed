//! Multiply-accumulate and fused sums over regions of 1400 bytes, for every kernel of this machine
//! and beside Intel's ISA-L where it is installed (Debian: `libisal2`):
//! `cargo bench -p marline-fec --bench kernels`.
//!
//! ISA-L's tables are ready before its multiply-accumulate is timed; the time of its sum contains
//! their making, because every coded symbol has coefficients of its own.

#![allow(clippy::print_stdout, reason = "a benchmark reports on stdout")]
#![allow(unsafe_code, reason = "ISA-L is a C library")]

mod common;

use std::hint::black_box;

use common::{alone, bytes, paired};
use libloading::{Library, Symbol};
use marline_fec::gf256::{Kernel, supported};

const LEN: usize = 1400;

type InitTables = unsafe extern "C" fn(i32, i32, *const u8, *mut u8);
type VectMad = unsafe extern "C" fn(i32, i32, i32, *const u8, *const u8, *mut u8);
type VectDot = unsafe extern "C" fn(i32, i32, *const u8, *const *const u8, *mut u8);

/// The three functions of ISA-L that are compared with.
struct IsaL<'l> {
    init_tables: Symbol<'l, InitTables>,
    mad: Symbol<'l, VectMad>,
    dot: Symbol<'l, VectDot>,
}

impl<'l> IsaL<'l> {
    fn from(library: &'l Library) -> Result<Self, libloading::Error> {
        // SAFETY: the types are those of ISA-L's erasure_code.h.
        unsafe {
            Ok(Self {
                init_tables: library.get(b"ec_init_tables")?,
                mad: library.get(b"gf_vect_mad")?,
                dot: library.get(b"gf_vect_dot_prod")?,
            })
        }
    }

    fn tables(&self, coefficients: &[u8]) -> Vec<u8> {
        let mut tables = vec![0; 32 * coefficients.len()];
        self.init(coefficients, &mut tables);
        tables
    }

    fn init(&self, coefficients: &[u8], tables: &mut [u8]) {
        assert!(tables.len() >= 32 * coefficients.len());
        // SAFETY: there are 32 bytes of table for each coefficient.
        unsafe {
            (self.init_tables)(
                coefficients.len() as i32,
                1,
                coefficients.as_ptr(),
                tables.as_mut_ptr(),
            );
        }
    }

    fn mad(&self, dst: &mut [u8], src: &[u8], tables: &[u8]) {
        assert!(dst.len() == src.len() && tables.len() >= 32);
        // SAFETY: both regions have the length, and the table is one coefficient's.
        unsafe {
            (self.mad)(
                dst.len() as i32,
                1,
                0,
                tables.as_ptr(),
                src.as_ptr(),
                dst.as_mut_ptr(),
            );
        }
    }

    fn dot(&self, dst: &mut [u8], sources: &[*const u8], tables: &[u8]) {
        // SAFETY: `sources` are regions as long as `dst`, with 32 bytes of table for each.
        unsafe {
            (self.dot)(
                dst.len() as i32,
                sources.len() as i32,
                tables.as_ptr(),
                sources.as_ptr(),
                dst.as_mut_ptr(),
            );
        }
    }
}

fn gigabytes(len: usize, nanoseconds: f64) -> f64 {
    len as f64 / nanoseconds
}

fn each_kernel() {
    println!("kernel   mad GB/s   dot of 64, ns a result   dot of 256, ns a result");
    for kernel in supported() {
        let (mut dst, src) = (bytes(LEN, 1), bytes(LEN, 2));
        let mad = alone(&mut || kernel.mad(black_box(&mut dst), black_box(&src), 29));
        let mut dot = |count| {
            let sources: Vec<Vec<u8>> = (0..count).map(|i| bytes(LEN, i)).collect();
            let terms: Vec<(u8, &[u8])> = (7..)
                .zip(&sources)
                .map(|(c, s)| (c as u8, &s[..]))
                .collect();
            alone(&mut || kernel.dot(black_box(&mut dst), black_box(&terms)))
        };
        let (narrow, wide) = (dot(64), dot(256));
        println!(
            "{:8} {:8.1} {narrow:24.0} {wide:25.0}",
            kernel.name(),
            gigabytes(LEN, mad)
        );
    }
}

fn beside_isal(isal: &IsaL<'_>, kernel: &dyn Kernel) {
    let src = bytes(LEN, 2);
    let (mut a, mut b) = (bytes(LEN, 1), bytes(LEN, 1));
    let tables = isal.tables(&[29]);
    kernel.mad(&mut a, &src, 29);
    isal.mad(&mut b, &src, &tables);
    assert_eq!(a, b, "both compute the same");
    let (ours, theirs, ratio) = paired(
        &mut || kernel.mad(black_box(&mut a), black_box(&src), 29),
        &mut || isal.mad(black_box(&mut b), black_box(&src), &tables),
    );
    println!(
        "{} mad: {:.1} GB/s, ISA-L {:.1} GB/s, speed ratio {:.2}",
        kernel.name(),
        gigabytes(LEN, ours),
        gigabytes(LEN, theirs),
        1.0 / ratio
    );
    for count in [64_u8, 255] {
        let sources: Vec<Vec<u8>> = (0..count).map(|i| bytes(LEN, i.into())).collect();
        let terms: Vec<(u8, &[u8])> = (1..).zip(&sources).map(|(c, s)| (c, &s[..])).collect();
        let coefficients: Vec<u8> = terms.iter().map(|term| term.0).collect();
        let pointers: Vec<*const u8> = sources.iter().map(|s| s.as_ptr()).collect();
        let mut tables = isal.tables(&coefficients);
        let (mut a, mut b) = (vec![0; LEN], vec![0; LEN]);
        kernel.dot(&mut a, &terms);
        isal.dot(&mut b, &pointers, &tables);
        assert_eq!(a, b, "both compute the same");
        let (ours, theirs, ratio) = paired(
            &mut || {
                let a = black_box(&mut a);
                a.fill(0);
                kernel.dot(a, black_box(&terms));
            },
            &mut || {
                isal.init(&coefficients, &mut tables);
                isal.dot(black_box(&mut b), black_box(&pointers), &tables);
            },
        );
        println!(
            "{} dot of {count}: {ours:.0} ns, ISA-L {theirs:.0} ns, speed ratio {:.2}",
            kernel.name(),
            1.0 / ratio
        );
    }
}

fn main() {
    each_kernel();
    // SAFETY: ISA-L has no initialiser that could do harm.
    match unsafe { Library::new("libisal.so.2") } {
        Err(error) => println!("ISA-L is missing, nothing to compare with: {error}"),
        Ok(library) => match IsaL::from(&library) {
            Err(error) => println!("ISA-L lacks a function, nothing to compare with: {error}"),
            Ok(isal) => {
                for kernel in supported() {
                    if kernel.name() != "naive" {
                        beside_isal(&isal, kernel);
                    }
                }
            }
        },
    }
}
