//! The address of a client, also behind proxies.

pub(crate) mod invalid_client_ip;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ipnet::IpNet;

use self::invalid_client_ip::InvalidClientIp;
use crate::key::missing_key::MissingKey;
use crate::usage::context::{RequestContext, network};

/// Where the address of a client comes from: the connection, or a header that trusted proxies write.
///
/// Clients can send any header themselves. So a header counts only on connections from a trusted proxy. It is read from the right,
/// where proxies append, and the first address that is not trusted is the client's.
///
/// Every trusted proxy must append to the header, or overwrite it: one that passes it on unchanged lets clients choose their
/// address. Trust only proxies, because a client in a trusted network can choose its address, too.
///
/// ```
/// use std::net::IpAddr;
/// use ratelimits::ClientIp;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client_ip = ClientIp::header("x-forwarded-for", ["10.0.0.0/8", "2001:db8:7::/48"])?;
/// let (proxy, stranger): (IpAddr, IpAddr) = ("10.0.0.7".parse()?, "198.51.100.2".parse()?);
///
/// // The client itself has sent the first address.
/// assert_eq!(client_ip.find(proxy, ["1.1.1.1, 192.0.2.9, 10.0.0.3"])?, "192.0.2.9".parse::<IpAddr>()?);
/// // On a direct connection, the header is ignored.
/// assert_eq!(client_ip.find(stranger, ["1.1.1.1"])?, stranger);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ClientIp {
    /// `None` for the address of the connection.
    forwarded: Option<Forwarded>,
    ipv6_prefix: u8,
}

/// A header with the addresses that a request has passed, and the proxies that write it.
#[derive(Clone)]
struct Forwarded {
    header: Box<str>,
    trusted: Box<[IpNet]>,
}

impl ClientIp {
    /// Takes the address of the connection, for servers that clients reach without a proxy.
    #[must_use]
    pub const fn peer() -> Self {
        ClientIp { forwarded: None, ipv6_prefix: 64 }
    }

    /// Takes the address from this header, such as `X-Forwarded-For`, on connections from the trusted networks, and that of the
    /// connection on all others. A network is written as `10.0.0.0/8`, or as a single address.
    ///
    /// The header holds addresses, separated by commas, with or without a port. Headers with a single address, such as
    /// `CF-Connecting-IP`, are read the same way. `Forwarded` of RFC 7239 is not supported.
    ///
    /// # Errors
    ///
    /// [`InvalidClientIp`] if the header has no valid name, or a network is not valid, includes every address, or is missing.
    pub fn header<N: AsRef<str>>(
        name: &str,
        trusted: impl IntoIterator<Item = N>,
    ) -> Result<Self, InvalidClientIp> {
        let header = header_name(name)?;
        let trusted: Box<[IpNet]> =
            trusted.into_iter().map(|text| trusted_network(text.as_ref())).collect::<Result<_, _>>()?;
        if trusted.is_empty() {
            let problem =
                "no proxy is trusted, so the header would never be read; list the networks of your proxies";
            return Err(InvalidClientIp::new(problem));
        }
        Ok(ClientIp { forwarded: Some(Forwarded { header, trusted }), ..ClientIp::peer() })
    }

    /// Sets how many bits of an IPv6 address identify a client (default 64, from 1 to 128). A provider usually assigns a /64 to each
    /// customer, sometimes a /56 or /48, and a client can use any address in it.
    ///
    /// # Errors
    ///
    /// [`InvalidClientIp`] if the number is 0 or over 128.
    ///
    /// ```
    /// use std::net::IpAddr;
    /// use ratelimits::ClientIp;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let customer = ClientIp::peer().ipv6_prefix(48)?.find("2001:db8:1:2::3".parse()?, [""; 0])?;
    /// assert_eq!(customer, "2001:db8:1::".parse::<IpAddr>()?);
    /// # Ok(()) }
    /// ```
    pub fn ipv6_prefix(self, bits: u8) -> Result<Self, InvalidClientIp> {
        match bits {
            1..=128 => Ok(ClientIp { ipv6_prefix: bits, ..self }),
            _ => Err(InvalidClientIp::new(format!("the IPv6 prefix has {bits} bits; it must have 1 to 128"))),
        }
    }

    /// Returns the name of the header in lower case, if there is one.
    #[must_use]
    pub fn header_name(&self) -> Option<&str> {
        self.forwarded.as_ref().map(|forwarded| &*forwarded.header)
    }

    /// Returns the address that a request counts by, given the address of its connection and all lines of the header in order.
    ///
    /// IPv6 addresses are reduced to their network. IPv4-mapped ones and those of NAT64 count as IPv4. If each address in the
    /// header is trusted, the first one is the client's.
    ///
    /// # Errors
    ///
    /// [`MissingKey::Ip`] if a trusted proxy has sent no header, or something else where an address should be. The proxy's own
    /// address would be the same for all of its clients.
    pub fn find<L: AsRef<[u8]>>(
        &self,
        peer: IpAddr,
        lines: impl IntoIterator<Item = L, IntoIter: DoubleEndedIterator>,
    ) -> Result<IpAddr, MissingKey> {
        let peer = peer.to_canonical();
        let client = match self.trusted(peer) {
            Some(forwarded) => forwarded.client(lines.into_iter()).ok_or(MissingKey::Ip)?,
            None => peer,
        };
        Ok(network(client, self.ipv6_prefix))
    }

    /// Whether the header is read on connections from this address.
    #[cfg(feature = "web")]
    pub(crate) fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted(peer.to_canonical()).is_some()
    }

    fn trusted(&self, peer: IpAddr) -> Option<&Forwarded> {
        self.forwarded.as_ref().filter(|forwarded| forwarded.is_trusted(peer))
    }

    /// Returns a context with the address that [`find`](Self::find) returns, and with none if that fails. Calls that need an
    /// address are then refused, health checks by the proxy itself included. To log the failure, call `find`.
    ///
    /// ```
    /// # use ratelimits::{ClientIp, Error, rate_limit};
    /// #[rate_limit("10/min", key_type = IP)]
    /// async fn search() -> Result<(), Error> {
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client_ip = ClientIp::header("x-forwarded-for", ["10.0.0.0/8"])?;
    /// client_ip.context("10.0.0.7".parse()?, ["192.0.2.9"]).scope(search()).await?;
    /// # Ok(()) }
    /// ```
    pub fn context<L: AsRef<[u8]>>(
        &self,
        peer: IpAddr,
        lines: impl IntoIterator<Item = L, IntoIter: DoubleEndedIterator>,
    ) -> RequestContext {
        RequestContext::new().in_network(self.find(peer, lines).ok())
    }
}

/// The address of the connection.
impl Default for ClientIp {
    fn default() -> Self {
        ClientIp::peer()
    }
}

impl Forwarded {
    fn is_trusted(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(&address))
    }

    /// Returns the first address from the right that is not trusted, or the leftmost. `None` if there is none, or something else
    /// comes before it.
    fn client<L: AsRef<[u8]>>(&self, lines: impl DoubleEndedIterator<Item = L>) -> Option<IpAddr> {
        let mut leftmost = None;
        for line in lines.rev() {
            // As in any list of HTTP, empty elements do not count.
            let entries = line.as_ref().rsplit(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            for entry in entries.filter(|entry| !entry.is_empty()) {
                let address = parse(entry)?;
                if !self.is_trusted(address) {
                    return Some(address);
                }
                leftmost = Some(address);
            }
        }
        leftmost
    }
}

/// With the number of networks, as there may be many.
impl fmt::Debug for Forwarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Forwarded { header, trusted } = self;
        f.debug_struct("Forwarded").field("header", header).field("trusted", &trusted.len()).finish()
    }
}

/// Parses an address, in brackets or not, with or without a port.
fn parse(entry: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(entry).ok()?;
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let address = match bare {
        Some(bracketed) => IpAddr::V6(bracketed.parse().ok()?),
        None => IpAddr::from_str(text).or_else(|_| SocketAddr::from_str(text).map(|it| it.ip())).ok()?,
    };
    Some(address.to_canonical())
}

fn header_name(name: &str) -> Result<Box<str>, InvalidClientIp> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(InvalidClientIp::new(format!("`{}` is not a header name", name.escape_debug())));
    }
    let name = name.to_ascii_lowercase();
    if name == "forwarded" {
        return Err(InvalidClientIp::new(
            "`Forwarded` is not supported; let the proxy write `X-Forwarded-For`",
        ));
    }
    Ok(name.into())
}

fn trusted_network(text: &str) -> Result<IpNet, InvalidClientIp> {
    let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).map_err(|_| {
        let text = text.escape_debug();
        InvalidClientIp::new(format!(
            "`{text}` is not a network; write it like `10.0.0.0/8` or `2001:db8::/32`"
        ))
    })?;
    match network {
        _ if network.prefix_len() == 0 => Err(InvalidClientIp::new(format!(
            "`{network}` includes every client, which could then choose its address; list your proxies only"
        ))),
        IpNet::V6(mapped) if mapped.addr().to_ipv4_mapped().is_some() => {
            Err(InvalidClientIp::new(format!("`{network}` is a network of IPv4 addresses; write it as one")))
        }
        _ => Ok(network),
    }
}
