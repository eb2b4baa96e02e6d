//! The keyed hash function: SipHash-1-3 over words.

/// Returns the SipHash-1-3 of a text under a seed of zeros, which is the same in every process and release.
pub(super) fn siphash(text: &[u8]) -> u64 {
    let mut sip = Sip::new([0; 2]);
    let rest = sip.words(text);
    sip.word(rest | (text.len() as u64) << 56);
    sip.finish()[0]
}

/// The state of SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF").
///
/// The first word of a hash is SipHash's own, a pseudorandom function to whoever does not know the seed; only its padding, the
/// length, is left out, because no two keys consist of the same words. The second is another sum of the same final state, and
/// has to tell apart only keys whose first words meet by chance, as two of 2^32 keys do. Nobody sees either word, and to make
/// both meet, no better way than trying keys is known.
#[derive(Clone, Copy)]
pub(super) struct Sip {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

impl Sip {
    pub(super) fn new(seed: [u64; 2]) -> Self {
        Sip {
            v0: seed[0] ^ 0x736f_6d65_7073_6575,
            v1: seed[1] ^ 0x646f_7261_6e64_6f6d,
            v2: seed[0] ^ 0x6c79_6765_6e65_7261,
            v3: seed[1] ^ 0x7465_6462_7974_6573,
        }
    }

    #[inline]
    pub(super) fn word(&mut self, word: u64) {
        self.v3 ^= word;
        self.round();
        self.v0 ^= word;
    }

    /// Adds the words of a text, and returns the rest of it, up to 7 bytes, as the lower end of a word.
    #[inline]
    pub(super) fn words(&mut self, text: &[u8]) -> u64 {
        let (words, rest) = text.as_chunks();
        words.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
        let bits = 8 * rest.len() as u32;
        match (text.last_chunk(), rest.first_chunk(), rest.last_chunk()) {
            (Some(last), ..) => u64::from_le_bytes(*last).checked_shr(64 - bits).unwrap_or(0),
            // At least 4 bytes, of which some may be in both.
            (None, Some(first), Some(last)) => {
                u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (bits - 32)
            }
            _ => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        }
    }

    #[inline(always)]
    pub(super) fn finish(mut self) -> [u64; 2] {
        self.v2 ^= 0xff;
        self.round();
        self.round();
        self.round();
        let left = self.v0 ^ self.v1;
        [left ^ self.v2 ^ self.v3, left]
    }

    #[inline]
    fn round(&mut self) {
        self.v0 = self.v0.wrapping_add(self.v1);
        self.v2 = self.v2.wrapping_add(self.v3);
        self.v1 = self.v1.rotate_left(13) ^ self.v0;
        self.v3 = self.v3.rotate_left(16) ^ self.v2;
        self.v0 = self.v0.rotate_left(32).wrapping_add(self.v3);
        self.v2 = self.v2.wrapping_add(self.v1);
        self.v1 = self.v1.rotate_left(17) ^ self.v2;
        self.v3 = self.v3.rotate_left(21) ^ self.v0;
        self.v2 = self.v2.rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hasher;

    use siphasher::sip::SipHasher13;

    use super::*;

    #[test]
    fn first_word_is_siphash() {
        for seed in [[0, 0], [1, 2], [u64::MAX, 0x0706_0504_0302_0100]] {
            let (mut sip, mut reference) = (Sip::new(seed), SipHasher13::new_with_keys(seed[0], seed[1]));
            for i in 0..100_u64 {
                // The reference ends with a word of the length in its highest byte.
                let mut padded = sip;
                padded.word((i * 8) << 56);
                assert_eq!(padded.finish()[0], reference.finish(), "{i} words");
                let word = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                sip.word(word);
                reference.write(&word.to_le_bytes());
            }
        }
    }

    #[test]
    fn texts_have_their_siphash() {
        for len in 0..300 {
            let text: Vec<_> = (0..len).map(|i| (i * 37) as u8).collect();
            assert_eq!(siphash(&text), SipHasher13::new().hash(&text), "{len} bytes");
        }
    }

    /// The second word has no reference. A change of it needs a reason, although no state outlives the process.
    #[test]
    fn both_words_are_as_before() {
        let mut sip = Sip::new([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        assert_eq!(sip.finish(), [13_008_925_649_040_885_214, 11_087_614_309_464_143_400]);
        sip.word(u64::from_le_bytes(*b"ratelimi"));
        assert_eq!(sip.finish(), [17_541_620_304_596_699_571, 9_203_138_374_688_580_205]);
    }
}
