//! A DNS server that answers as a test wants, and differently each time if need be.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::UdpSocket;
use tokio::sync::Notify;

/// A responder on a loopback address.
pub struct Dns {
    pub address: SocketAddr,
    questions: Arc<AtomicUsize>,
}

impl Dns {
    /// Answers each question of one kind with the next list, and from then on with the last.
    pub async fn answering(answers: &[&[&str]]) -> Self {
        Self::start(answers, None).await
    }

    /// Answers after a signal of the test; notifies the test when it is asked.
    pub async fn waiting(answers: &[&[&str]], asked: Arc<Notify>, go: Arc<Notify>) -> Self {
        Self::start(answers, Some((asked, go))).await
    }

    async fn start(answers: &[&[&str]], gate: Option<(Arc<Notify>, Arc<Notify>)>) -> Self {
        let answers: Vec<Vec<IpAddr>> =
            answers.iter().map(|list| list.iter().map(|text| text.parse().unwrap()).collect()).collect();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let dns = Self { address: socket.local_addr().unwrap(), questions: Arc::default() };
        let questions = dns.questions.clone();
        tokio::spawn(async move {
            let mut asked = [0_usize; 2];
            let mut packet = [0; 1500];
            loop {
                let (length, from) = socket.recv_from(&mut packet).await.unwrap();
                questions.fetch_add(1, Ordering::SeqCst);
                let question = Question::read(&packet[..length]);
                let kind = usize::from(question.ipv6);
                let list = &answers[asked[kind].min(answers.len() - 1)];
                asked[kind] += 1;
                if let Some((asked, go)) = &gate
                    && kind == 0
                {
                    asked.notify_one();
                    go.notified().await;
                }
                let of_kind: Vec<IpAddr> =
                    list.iter().copied().filter(|address| address.is_ipv6() == question.ipv6).collect();
                socket.send_to(&question.answer(&of_kind), from).await.unwrap();
            }
        });
        dns
    }

    /// Questions it was asked; a look-up is two, one for each family.
    pub fn questions(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }
}

struct Question {
    id: [u8; 2],
    /// Name, type and class as they came.
    bytes: Vec<u8>,
    ipv6: bool,
}

impl Question {
    fn read(packet: &[u8]) -> Self {
        let mut end = 12;
        while packet[end] != 0 {
            end += usize::from(packet[end]) + 1;
        }
        let kind = u16::from_be_bytes([packet[end + 1], packet[end + 2]]);
        assert!([1, 28].contains(&kind), "only addresses are asked for, not type {kind}");
        Self { id: [packet[0], packet[1]], bytes: packet[12..end + 5].to_vec(), ipv6: kind == 28 }
    }

    fn answer(&self, addresses: &[IpAddr]) -> Vec<u8> {
        let mut packet = self.id.to_vec();
        // A response, recursion desired and available; one question and the answers.
        packet.extend([0x81, 0x80, 0, 1, 0, u8::try_from(addresses.len()).unwrap(), 0, 0, 0, 0]);
        packet.extend(&self.bytes);
        for address in addresses {
            let data = match address {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            };
            // The name of the question, its type, class IN, a minute to live.
            packet.extend([0xc0, 12, 0, if self.ipv6 { 28 } else { 1 }, 0, 1, 0, 0, 0, 60]);
            packet.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
            packet.extend(data);
        }
        packet
    }
}
