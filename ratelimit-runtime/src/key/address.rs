//! The text of an address, many times as fast as by `Display`.

use std::io::Write;
use std::net::IpAddr;

/// The text of an address, as its `Display` has it.
pub(crate) struct AddressText {
    bytes: [u8; MAX_LEN],
    len: usize,
}

/// Eight groups of four digits, and what is between them.
const MAX_LEN: usize = 39;

impl AddressText {
    #[inline]
    pub(crate) fn new(address: IpAddr) -> Self {
        let mut text = AddressText { bytes: [0; MAX_LEN], len: 0 };
        match address {
            IpAddr::V4(address) => {
                for (i, octet) in address.octets().into_iter().enumerate() {
                    if i > 0 {
                        text.push(b'.');
                    }
                    text.push_octet(octet);
                }
            }
            // Which zeros are left out takes longer to say.
            IpAddr::V6(_) => {
                let mut rest = &mut text.bytes[..];
                // No text is longer.
                _ = write!(rest, "{address}");
                text.len = MAX_LEN - rest.len();
            }
        }
        text
    }

    #[inline]
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    #[inline]
    fn push_octet(&mut self, octet: u8) {
        if octet >= 100 {
            self.push(b'0' + octet / 100);
        }
        if octet >= 10 {
            self.push(b'0' + octet / 10 % 10);
        }
        self.push(b'0' + octet % 10);
    }

    #[inline]
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::property_tests::config;

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn texts_are_those_of_display(v4 in any::<[u8; 4]>(), v6 in any::<[u16; 8]>(), zeros in any::<u8>()) {
            let groups = std::array::from_fn(|i| if zeros >> i & 1 == 1 { 0 } else { v6[i] });
            for address in [IpAddr::from(v4), IpAddr::from(v6), IpAddr::from(groups), [0, 0, 0, 0].into()] {
                let text = AddressText::new(address);
                prop_assert_eq!(text.as_str(), address.to_string());
            }
        }
    }

    #[test]
    fn longest_texts_fit() {
        for address in
            [IpAddr::from([255; 4]), IpAddr::from([0xffff_u16; 8]), "::ffff:255.255.255.255".parse().unwrap()]
        {
            assert_eq!(AddressText::new(address).as_str(), address.to_string());
        }
    }
}
