//! Tables computed at compile time; everything follows from the polynomial.

/// x⁸ + x⁴ + x³ + x² + 1, the polynomial of RFC 5510 and RFC 8681, less its leading term.
const POLYNOMIAL: u8 = 0x1d;

/// `a · 2` in the field.
const fn double(a: u8) -> u8 {
    (a << 1) ^ (if a & 0x80 == 0 { 0 } else { POLYNOMIAL })
}

/// Logarithms to the base 2, which generates the field's multiplicative group; `LOG[0]` is unused.
const LOG: [u8; 256] = {
    let mut log = [0; 256];
    let (mut power, mut exponent) = (1, 0);
    while exponent < 255 {
        log[power as usize] = exponent;
        power = double(power);
        exponent += 1;
    }
    log
};

/// Powers of 2, twice over, so that the sum of two logarithms needs no reduction.
const EXP: [u8; 510] = {
    let mut exp = [0; 510];
    let (mut power, mut exponent) = (1, 0);
    while exponent < 255 {
        exp[exponent] = power;
        exp[exponent + 255] = power;
        power = double(power);
        exponent += 1;
    }
    exp
};

const fn product(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    EXP[LOG[a as usize] as usize + LOG[b as usize] as usize]
}

/// `PRODUCTS[a][b] = a · b`.
pub(super) static PRODUCTS: [[u8; 256]; 256] = {
    let mut products = [[0; 256]; 256];
    let mut a = 1;
    while a < 256 {
        let mut b = 1;
        while b < 256 {
            products[a][b] = product(a as u8, b as u8);
            b += 1;
        }
        a += 1;
    }
    products
};

/// `INVERSES[a] · a = 1` for `a ≠ 0`; `INVERSES[0]` is 0.
pub(super) static INVERSES: [u8; 256] = {
    let mut inverses = [0; 256];
    let mut a = 1;
    while a < 256 {
        inverses[a] = EXP[255 - LOG[a] as usize];
        a += 1;
    }
    inverses
};

/// For every coefficient the products with the 16 low and the 16 high nibbles: what byte shuffles
/// look up.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) static NIBBLES: [[[u8; 16]; 2]; 256] = {
    let mut nibbles = [[[0; 16]; 2]; 256];
    let mut c = 0;
    while c < 256 {
        let mut n = 0;
        while n < 16 {
            nibbles[c][0][n] = product(c as u8, n as u8);
            nibbles[c][1][n] = product(c as u8, (n as u8) << 4);
            n += 1;
        }
        c += 1;
    }
    nibbles
};

/// For every coefficient the 8×8 bit matrix of its multiplication as GF2P8AFFINEQB takes it: byte
/// 7 − i holds the row of result bit i. (The instruction's own multiplication, GF2P8MULB, uses
/// another polynomial.)
#[cfg(target_arch = "x86_64")]
pub(super) static MATRICES: [u64; 256] = {
    let mut matrices = [0; 256];
    let mut c = 0;
    while c < 256 {
        let mut matrix = [0_u8; 8];
        let mut column = 0;
        while column < 8 {
            let image = product(c as u8, 1 << column);
            let mut row = 0;
            while row < 8 {
                matrix[7 - row] |= ((image >> row) & 1) << column;
                row += 1;
            }
            column += 1;
        }
        matrices[c] = u64::from_le_bytes(matrix);
        c += 1;
    }
    matrices
};
