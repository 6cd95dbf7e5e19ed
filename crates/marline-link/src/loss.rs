use marline_base::Rng;

/// The loss process, applied to packets that have left the queue: a lost packet has used its
/// share of the capacity.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Loss {
    /// Nothing is lost.
    #[default]
    None,
    /// Every packet is lost with this probability, independently of all others.
    Independent(f64),
    /// Two states, good and bad, that change from packet to packet (Gilbert 1960, Elliott 1963).
    ///
    /// The run starts in a state drawn from the stationary distribution, in which the bad state
    /// has probability `to_bad / (to_bad + to_good)` and lasts `1 / to_good` packets on average.
    GilbertElliott {
        /// Probability to go from good to bad before the next packet.
        to_bad: f64,
        /// Probability to go from bad to good before the next packet.
        to_good: f64,
        /// Probability that a packet is lost in the bad state.
        loss_in_bad: f64,
        /// Probability that a packet is lost in the good state.
        loss_in_good: f64,
    },
}

impl Loss {
    /// Losses that come in bursts of `burst` packets on average (at least 1) and take a share
    /// `rate` (0 to 1, exclusive) of all packets: Gilbert's model, in which the bad state loses
    /// everything.
    pub fn in_bursts(rate: f64, burst: f64) -> Self {
        let to_good = 1.0 / burst;
        Self::GilbertElliott {
            to_bad: to_good * rate / (1.0 - rate),
            to_good,
            loss_in_bad: 1.0,
            loss_in_good: 0.0,
        }
    }

    /// The share of packets that is lost in the long run.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Independent(p) => p,
            Self::GilbertElliott {
                to_bad,
                to_good,
                loss_in_bad,
                loss_in_good,
            } => {
                let bad = stationary_bad(to_bad, to_good);
                bad * loss_in_bad + (1.0 - bad) * loss_in_good
            }
        }
    }
}

fn stationary_bad(to_bad: f64, to_good: f64) -> f64 {
    if to_bad == 0.0 {
        0.0
    } else {
        to_bad / (to_bad + to_good)
    }
}

/// [`Loss`] at work.
#[derive(Clone, Debug)]
pub(crate) struct Lottery {
    loss: Loss,
    bad: bool,
    rng: Rng,
}

impl Lottery {
    pub(crate) fn new(loss: Loss, mut rng: Rng) -> Self {
        let bad = match loss {
            Loss::GilbertElliott {
                to_bad, to_good, ..
            } => rng.chance(stationary_bad(to_bad, to_good)),
            Loss::None | Loss::Independent(_) => false,
        };
        Self { loss, bad, rng }
    }

    /// Whether the next packet is lost.
    pub(crate) fn draw(&mut self) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::Independent(p) => self.rng.chance(p),
            Loss::GilbertElliott {
                to_bad,
                to_good,
                loss_in_bad,
                loss_in_good,
            } => {
                let lost = self
                    .rng
                    .chance(if self.bad { loss_in_bad } else { loss_in_good });
                let flips = self.rng.chance(if self.bad { to_good } else { to_bad });
                self.bad ^= flips;
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: u32 = 400_000;

    fn lottery(loss: Loss) -> Lottery {
        Lottery::new(loss, Rng::new(11).stream("loss"))
    }

    #[test]
    fn independent_losses_have_their_rate_and_no_memory() {
        let mut lottery = lottery(Loss::Independent(0.02));
        let (mut lost, mut pairs, mut previous) = (0.0, 0.0, false);
        for _ in 0..N {
            let now = lottery.draw();
            lost += f64::from(u8::from(now));
            pairs += f64::from(u8::from(now && previous));
            previous = now;
        }
        let n = f64::from(N);
        // Six standard errors of a share p are 6·sqrt(p(1−p)/N).
        assert!(libm::fabs(lost / n - 0.02) < 0.0014, "{}", lost / n);
        assert!(libm::fabs(pairs / n - 0.0004) < 0.0002, "{}", pairs / n);
    }

    #[test]
    fn bursts_have_their_mean_length_and_share() {
        let loss = Loss::in_bursts(0.05, 4.0);
        assert!(libm::fabs(loss.mean() - 0.05) < 1e-12);
        let mut lottery = lottery(loss);
        let (mut lost, mut bursts, mut previous) = (0.0, 0.0, false);
        for _ in 0..N {
            let now = lottery.draw();
            lost += f64::from(u8::from(now));
            bursts += f64::from(u8::from(now && !previous));
            previous = now;
        }
        // A burst's length is geometric with mean 4 and variance 12; about 5000 bursts, so that
        // six standard errors are 0.3 packets; the share's are 0.05·6·sqrt(16/5000)/4 ≈ 0.006.
        assert!(libm::fabs(lost / bursts - 4.0) < 0.3, "{}", lost / bursts);
        assert!(libm::fabs(lost / f64::from(N) - 0.05) < 0.006, "{lost}");
    }

    #[test]
    fn both_states_lose_at_their_own_rate_and_decay_geometrically() {
        // The state's autocorrelation at lag k is (1 − to_bad − to_good)^k; that of the losses is
        // proportional to it, so the ratio of two lags gives the base.
        let loss = Loss::GilbertElliott {
            to_bad: 0.05,
            to_good: 0.15,
            loss_in_bad: 0.8,
            loss_in_good: 0.1,
        };
        let mean = 0.25 * 0.8 + 0.75 * 0.1;
        assert!(libm::fabs(loss.mean() - mean) < 1e-12);
        let mut lottery = lottery(loss);
        let draws: alloc::vec::Vec<f64> = (0..N)
            .map(|_| f64::from(u8::from(lottery.draw())) - mean)
            .collect();
        let covariance = |lag: usize| {
            draws
                .iter()
                .zip(&draws[lag..])
                .map(|(a, b)| a * b)
                .sum::<f64>()
                / f64::from(N)
        };
        let expected = |lag: i32| 0.25 * 0.75 * 0.7 * 0.7 * libm::pow(0.8, f64::from(lag));
        for lag in 1..6_i32 {
            let got = covariance(lag as usize);
            assert!(libm::fabs(got - expected(lag)) < 0.006, "lag {lag}: {got}");
        }
    }

    #[test]
    fn an_absorbing_good_state_never_loses() {
        let mut lottery = lottery(Loss::GilbertElliott {
            to_bad: 0.0,
            to_good: 0.0,
            loss_in_bad: 1.0,
            loss_in_good: 0.0,
        });
        assert!((0..1_000).all(|_| !lottery.draw()));
    }

    #[test]
    fn bursts_are_geometric() {
        let mut lottery = lottery(Loss::in_bursts(0.05, 4.0));
        let mut lengths = [0_u32; 9];
        let mut length = 0;
        for _ in 0..N {
            if lottery.draw() {
                length += 1;
            } else if length > 0 {
                lengths[usize::min(length, 9) - 1] += 1;
                length = 0;
            }
        }
        // P(L = k) = ¼·(¾)^(k−1), and the last class holds what is longer: χ² with 8 degrees of
        // freedom exceeds 26.1 once in a thousand times.
        let bursts = f64::from(lengths.iter().sum::<u32>());
        let chi2: f64 = (0..9)
            .map(|k| {
                let tail = libm::pow(0.75, f64::from(k));
                let expected = bursts * if k == 8 { tail } else { 0.25 * tail };
                let off = f64::from(lengths[k as usize]) - expected;
                off * off / expected
            })
            .sum();
        assert!(bursts > 4_000.0 && chi2 < 26.1, "{bursts} {chi2}");
    }

    #[test]
    fn losses_are_stationary_from_the_first_packet() {
        let loss = Loss::GilbertElliott {
            to_bad: 0.01,
            to_good: 0.03,
            loss_in_bad: 0.9,
            loss_in_good: 0.02,
        };
        // Over runs, each packet is lost with the long run's probability, 0.24, the first like the
        // fortieth; six standard errors over 20 000 runs are 0.018.
        let mut lost = [0_u32; 40];
        for seed in 0..20_000 {
            let mut lottery = Lottery::new(loss, Rng::new(seed).stream("loss"));
            for count in &mut lost {
                *count += u32::from(lottery.draw());
            }
        }
        assert!(libm::fabs(loss.mean() - 0.24) < 1e-12);
        for (packet, count) in lost.iter().enumerate() {
            let share = f64::from(*count) / 20_000.0;
            assert!(libm::fabs(share - 0.24) < 0.018, "packet {packet}: {share}");
        }
    }
}
