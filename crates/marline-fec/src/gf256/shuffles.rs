//! Kernels that look products up by shuffles of bytes. A product with a constant is linear over
//! GF(2), so that of a byte is the sum of its two nibbles' products, each one of sixteen.

/// A kernel for vectors of `$width` bytes. What is left at the end of a region goes through a copy
/// that zeros follow.
macro_rules! shuffles {
    ($(#[$doc:meta])* $kernel:ident $name:literal if $there:expr;
     $vector:ty: $width:literal bytes,
     load: $from:ident => $load:expr,
     store: $to:ident, $stored:ident => $store:expr,
     table: $sixteen:ident => $table:expr,
     nibbles: $byte:ident => $nibbles:expr,
     look_up: $look_up:ident,
     xor: $xor:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $kernel(());

        impl $kernel {
            /// The kernel, if this machine can run it.
            pub fn detect() -> Option<&'static Self> {
                static KERNEL: $kernel = $kernel(());
                ($there).then_some(&KERNEL)
            }

            /// Vectors of a destination that are summed in registers at a time: half of the sixteen
            /// that the smallest machine has, as tables, mask and nibbles need some, too.
            const LANES: usize = 8;
            /// The same in bytes.
            const STRIPE: usize = Self::LANES * $width;

            #[inline]
            #[target_feature(enable = $name)]
            fn load($from: &[u8; $width]) -> $vector {
                // SAFETY: the array has as many bytes as the vector; any alignment will do.
                unsafe { $load }
            }

            #[inline]
            #[target_feature(enable = $name)]
            fn store($to: &mut [u8; $width], $stored: $vector) {
                // SAFETY: the array has as many bytes as the vector; any alignment will do.
                unsafe { $store }
            }

            /// The products of low nibbles with `c`, and of high ones.
            #[inline]
            #[target_feature(enable = $name)]
            fn tables(c: u8) -> [$vector; 2] {
                let [low, high] = &$crate::gf256::tables::NIBBLES[usize::from(c)];
                [Self::table(low), Self::table(high)]
            }

            #[inline]
            #[target_feature(enable = $name)]
            fn table($sixteen: &[u8; 16]) -> $vector {
                // SAFETY: the array has 16 bytes; any alignment will do.
                unsafe { $table }
            }

            #[inline]
            #[target_feature(enable = $name)]
            fn product($byte: $vector, [of_low, of_high]: [$vector; 2]) -> $vector {
                let [low, high] = $nibbles;
                $xor($look_up(of_low, low), $look_up(of_high, high))
            }

            #[target_feature(enable = $name)]
            fn mad_region(dst: &mut [u8], src: &[u8], c: u8) {
                let tables = Self::tables(c);
                let len = dst.len().min(src.len());
                let (dst, dst_rest) = dst[..len].as_chunks_mut::<$width>();
                let (src, src_rest) = src[..len].as_chunks::<$width>();
                for (d, s) in dst.iter_mut().zip(src) {
                    let sum = $xor(Self::load(d), Self::product(Self::load(s), tables));
                    Self::store(d, sum);
                }
                if !src_rest.is_empty() {
                    let mut padded = [0; $width];
                    padded[..src_rest.len()].copy_from_slice(src_rest);
                    let product = Self::product(Self::load(&padded), tables);
                    Self::store(&mut padded, product);
                    for (d, p) in dst_rest.iter_mut().zip(&padded) {
                        *d ^= p;
                    }
                }
            }

            #[target_feature(enable = $name)]
            fn scale_region(dst: &mut [u8], c: u8) {
                let tables = Self::tables(c);
                let (dst, rest) = dst.as_chunks_mut::<$width>();
                for d in dst {
                    let product = Self::product(Self::load(d), tables);
                    Self::store(d, product);
                }
                let mut padded = [0; $width];
                padded[..rest.len()].copy_from_slice(rest);
                let product = Self::product(Self::load(&padded), tables);
                Self::store(&mut padded, product);
                rest.copy_from_slice(&padded[..rest.len()]);
            }

            #[target_feature(enable = $name)]
            fn dot_region(dst: &mut [u8], terms: &[(u8, &[u8])]) {
                let (stripes, rest) = dst.as_chunks_mut::<{ Self::STRIPE }>();
                for (index, stripe) in stripes.iter_mut().enumerate() {
                    Self::dot_stripe(stripe, index * Self::STRIPE, terms);
                }
                let at = stripes.len() * Self::STRIPE;
                for (c, src) in terms {
                    Self::mad_region(rest, src.get(at..).unwrap_or(&[]), *c);
                }
            }

            /// Adds to `stripe` what the terms have from `at` on.
            #[target_feature(enable = $name)]
            fn dot_stripe(
                stripe: &mut [u8; Self::STRIPE],
                at: usize,
                terms: &[(u8, &[u8])],
            ) {
                let (stripe, _) = stripe.as_chunks_mut::<$width>();
                let mut sums: [$vector; Self::LANES] =
                    core::array::from_fn(|lane| Self::load(&stripe[lane]));
                for (c, src) in terms {
                    let Some(src) = src.get(at..) else { continue };
                    let tables = Self::tables(*c);
                    let padded;
                    let src = match src.first_chunk::<{ Self::STRIPE }>() {
                        Some(whole) => whole,
                        None => {
                            let mut bytes = [0; Self::STRIPE];
                            bytes[..src.len()].copy_from_slice(src);
                            padded = bytes;
                            &padded
                        }
                    };
                    for (sum, x) in sums.iter_mut().zip(src.as_chunks::<$width>().0) {
                        *sum = $xor(*sum, Self::product(Self::load(x), tables));
                    }
                }
                for (d, sum) in stripe.iter_mut().zip(sums) {
                    Self::store(d, sum);
                }
            }
        }

        impl $crate::gf256::Kernel for $kernel {
            fn name(&self) -> &'static str {
                $name
            }

            fn mad(&self, dst: &mut [u8], src: &[u8], c: u8) {
                // SAFETY: a value of this type exists only where `detect` found the feature.
                unsafe { Self::mad_region(dst, src, c) }
            }

            fn scale(&self, dst: &mut [u8], c: u8) {
                // SAFETY: a value of this type exists only where `detect` found the feature.
                unsafe { Self::scale_region(dst, c) }
            }

            fn dot(&self, dst: &mut [u8], terms: &[(u8, &[u8])]) {
                // SAFETY: a value of this type exists only where `detect` found the feature.
                unsafe { Self::dot_region(dst, terms) }
            }
        }
    };
}

pub(super) use shuffles;
