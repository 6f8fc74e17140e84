// Runs a transfer pattern in ns-3, packet by packet, with one TCP connection for each flow. Every
// host has a point-to-point link to one router. The host's device sends at its up rate, and the
// router's at the host's down rate. The connections use IPv4, segments of 1448 bytes, an initial
// window of 10 segments, SACK and timestamps, delayed acknowledgements, and buffers that never
// limit. All else is ns-3's default. Each device has 100 packets of drop-tail below an FqCoDel of
// 10240 packets, recovery is PRR, and the least retransmission timeout is 1 s. Prints `index
// end_seconds` for each flow: the time at which its last byte reached the receiving application.
//
//   ns3_reference PATTERN [--tcp newreno|cubic] [--fifo PACKETS] [--device-queue PACKETS]
//                         [--delayed-ack SEGMENTS] [--trace FLOW]
//     --fifo N           drop-tail of N packets in each device instead of the default queues
//     --device-queue N   the default disciplines over devices of N packets
//     --delayed-ack N    acknowledge every N segments (default 2); with 1, slow start doubles
//                        in each round trip, as in Linux
//     --trace I          print the congestion window of flow I, dropped packets, and queue
//                        lengths on standard error

#include "tests/accuracy/pattern.hpp"

#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

#include <cstdio>
#include <cstring>

namespace {

using shoal::accuracy::pattern;

struct options {
  std::string path;
  std::string tcp = "newreno";
  int fifo = 0;
  int device_queue = 0;
  int delayed_ack = 0;
  int trace = -1;
};

struct arrival {
  std::uint64_t bytes = 0;
  double end_seconds = -1;
};

constexpr std::uint16_t first_port = 1000;

double now() {
  return ns3::Simulator::Now().GetSeconds();
}

void set_defaults(const options& o) {
  using ns3::Config::SetDefault;
  const std::string type = o.tcp == "cubic" ? "ns3::TcpCubic" : "ns3::TcpNewReno";
  SetDefault("ns3::TcpL4Protocol::SocketType", ns3::TypeIdValue(ns3::TypeId::LookupByName(type)));
  SetDefault("ns3::TcpSocket::SegmentSize", ns3::UintegerValue(1448));
  SetDefault("ns3::TcpSocket::InitialCwnd", ns3::UintegerValue(10));
  SetDefault("ns3::TcpSocket::SndBufSize", ns3::UintegerValue(64u << 20));
  SetDefault("ns3::TcpSocket::RcvBufSize", ns3::UintegerValue(64u << 20));
  if (o.delayed_ack > 0)
    SetDefault("ns3::TcpSocket::DelAckCount", ns3::UintegerValue(o.delayed_ack));
  const int packets = o.fifo > 0 ? o.fifo : o.device_queue;
  if (packets > 0)
    SetDefault("ns3::DropTailQueue<Packet>::MaxSize",
               ns3::StringValue(std::to_string(packets) + "p"));
}

void trace_socket(ns3::Ptr<ns3::BulkSendApplication> sender) {
  auto socket = sender->GetSocket();
  if (!socket) {
    ns3::Simulator::Schedule(ns3::MicroSeconds(1), &trace_socket, sender);
    return;
  }
  socket->TraceConnectWithoutContext(
      "CongestionWindow",
      ns3::Callback<void, std::uint32_t, std::uint32_t>([](std::uint32_t from, std::uint32_t to) {
        std::fprintf(stderr, "%.6f cwnd %u %u\n", now(), from, to);
      }));
  socket->TraceConnectWithoutContext(
      "SlowStartThreshold",
      ns3::Callback<void, std::uint32_t, std::uint32_t>([](std::uint32_t from, std::uint32_t to) {
        std::fprintf(stderr, "%.6f ssthresh %u %u\n", now(), from, to);
      }));
  socket->TraceConnectWithoutContext(
      "CongState",
      ns3::Callback<void, ns3::TcpSocketState::TcpCongState_t, ns3::TcpSocketState::TcpCongState_t>(
          [](ns3::TcpSocketState::TcpCongState_t from, ns3::TcpSocketState::TcpCongState_t to) {
            std::fprintf(stderr, "%.6f state %s %s\n", now(),
                         ns3::TcpSocketState::TcpCongStateName[from],
                         ns3::TcpSocketState::TcpCongStateName[to]);
          }));
  socket->TraceConnectWithoutContext(
      "RTT", ns3::Callback<void, ns3::Time, ns3::Time>([](ns3::Time, ns3::Time to) {
        std::fprintf(stderr, "%.6f rtt %.6f\n", now(), to.GetSeconds());
      }));
}

void print_queue(ns3::Ptr<ns3::NetDevice> device, const char* name) {
  auto link = ns3::DynamicCast<ns3::PointToPointNetDevice>(device);
  auto control = device->GetNode()->GetObject<ns3::TrafficControlLayer>();
  auto root = control ? control->GetRootQueueDiscOnDevice(device) : nullptr;
  std::fprintf(stderr, "%.6f queue %s device %u discipline %u\n", now(), name,
               link->GetQueue()->GetNPackets(), root ? root->GetNPackets() : 0);
  ns3::Simulator::Schedule(ns3::MilliSeconds(10), &print_queue, device, name);
}

void trace_drops(ns3::Ptr<ns3::NetDevice> device, const char* name) {
  auto control = device->GetNode()->GetObject<ns3::TrafficControlLayer>();
  auto root = control ? control->GetRootQueueDiscOnDevice(device) : nullptr;
  if (root)
    root->TraceConnect("Drop", name,
                       ns3::Callback<void, std::string, ns3::Ptr<const ns3::QueueDiscItem>>(
                           [](std::string where, ns3::Ptr<const ns3::QueueDiscItem> item) {
                             std::fprintf(
                                 stderr, "%.6f drop %s after %.6f\n", now(), where.c_str(),
                                 (ns3::Simulator::Now() - item->GetTimeStamp()).GetSeconds());
                           }));
  auto link = ns3::DynamicCast<ns3::PointToPointNetDevice>(device);
  link->GetQueue()->TraceConnect("Drop", name,
                                 ns3::Callback<void, std::string, ns3::Ptr<const ns3::Packet>>(
                                     [](std::string where, ns3::Ptr<const ns3::Packet>) {
                                       std::fprintf(stderr, "%.6f drop %s device\n", now(),
                                                    where.c_str());
                                     }));
}

std::vector<arrival> simulate(const pattern& p, const options& o) {
  set_defaults(o);
  ns3::NodeContainer router(1), hosts(p.hosts.size());
  ns3::InternetStackHelper stack;
  ns3::Ipv4StaticRoutingHelper routing;
  stack.SetRoutingHelper(routing);
  stack.Install(router);
  stack.Install(hosts);

  ns3::PointToPointHelper link;
  ns3::Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
  std::vector<ns3::Ipv4Address> address(p.hosts.size());
  std::vector<ns3::NetDeviceContainer> devices(p.hosts.size());
  for (std::size_t i = 0; i < p.hosts.size(); ++i) {
    link.SetChannelAttribute("Delay", ns3::TimeValue(ns3::NanoSeconds(p.hosts[i].delay_ns)));
    devices[i] = link.Install(hosts.Get(i), router.Get(0));
    devices[i].Get(0)->SetAttribute(
        "DataRate", ns3::DataRateValue(ns3::DataRate(p.hosts[i].up_bits_per_second)));
    devices[i].Get(1)->SetAttribute(
        "DataRate", ns3::DataRateValue(ns3::DataRate(p.hosts[i].down_bits_per_second)));
    const auto assigned = addresses.Assign(devices[i]);
    addresses.NewNetwork();
    if (o.fifo > 0) {
      // Without a root discipline, packets go straight to the device's drop-tail queue.
      ns3::TrafficControlHelper().Uninstall(devices[i]);
    }
    address[i] = assigned.GetAddress(0);
    routing.GetStaticRouting(hosts.Get(i)->GetObject<ns3::Ipv4>())
        ->SetDefaultRoute(assigned.GetAddress(1), 1);
  }

  std::vector<arrival> arrivals(p.flows.size());
  for (std::size_t i = 0; i < p.flows.size(); ++i) {
    const auto& f = p.flows[i];
    const auto port = static_cast<std::uint16_t>(first_port + i);
    ns3::PacketSinkHelper sinks("ns3::TcpSocketFactory",
                                ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), port));
    auto sink = sinks.Install(hosts.Get(f.to));
    sink.Start(ns3::Seconds(0));
    arrival* a = &arrivals[i];
    const std::uint64_t bytes = f.bytes;
    sink.Get(0)->TraceConnectWithoutContext(
        "Rx", ns3::Callback<void, ns3::Ptr<const ns3::Packet>, const ns3::Address&>(
                  [a, bytes](ns3::Ptr<const ns3::Packet> packet, const ns3::Address&) {
                    a->bytes += packet->GetSize();
                    if (a->bytes >= bytes && a->end_seconds < 0) a->end_seconds = now();
                  }));
    ns3::BulkSendHelper senders("ns3::TcpSocketFactory",
                                ns3::InetSocketAddress(address[f.to], port));
    senders.SetAttribute("MaxBytes", ns3::UintegerValue(f.bytes));
    senders.SetAttribute("SendSize", ns3::UintegerValue(1448));
    auto sender = senders.Install(hosts.Get(f.from));
    sender.Start(ns3::NanoSeconds(f.start_ns));
    if (static_cast<int>(i) == o.trace) {
      ns3::Simulator::Schedule(ns3::NanoSeconds(f.start_ns), &trace_socket,
                               ns3::DynamicCast<ns3::BulkSendApplication>(sender.Get(0)));
      trace_drops(devices[f.from].Get(0), "up");
      trace_drops(devices[f.to].Get(1), "down");
      ns3::Simulator::Schedule(ns3::Seconds(0), &print_queue, devices[f.from].Get(0), "up");
      ns3::Simulator::Schedule(ns3::Seconds(0), &print_queue, devices[f.to].Get(1), "down");
    }
  }

  // The simulation stops once every connection is closed. Tracing would continue, so it has a
  // limit.
  ns3::Simulator::Stop(ns3::Seconds(o.trace >= 0 ? 60 : 3600));
  ns3::Simulator::Run();
  ns3::Simulator::Destroy();
  return arrivals;
}

bool parse(int argc, char** argv, options& o) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool last = i + 1 == argc;
    if (word == "--tcp" && !last)
      o.tcp = argv[++i];
    else if (word == "--fifo" && !last)
      o.fifo = std::atoi(argv[++i]);
    else if (word == "--device-queue" && !last)
      o.device_queue = std::atoi(argv[++i]);
    else if (word == "--delayed-ack" && !last)
      o.delayed_ack = std::atoi(argv[++i]);
    else if (word == "--trace" && !last)
      o.trace = std::atoi(argv[++i]);
    else if (word[0] != '-' && o.path.empty())
      o.path = word;
    else
      return false;
  }
  return !o.path.empty() && (o.tcp == "newreno" || o.tcp == "cubic");
}

} // namespace

int main(int argc, char** argv) {
  options o;
  if (!parse(argc, argv, o)) {
    std::fprintf(stderr, "usage: ns3_reference PATTERN [--tcp newreno|cubic] [--fifo PACKETS] "
                         "[--device-queue PACKETS] [--delayed-ack SEGMENTS] [--trace FLOW]\n");
    return 2;
  }
  try {
    const pattern p = shoal::accuracy::read_pattern(o.path);
    const auto arrivals = simulate(p, o);
    std::printf("# ns-3, %s%s, %s\n", o.tcp.c_str(),
                o.delayed_ack == 1 ? ", every segment acknowledged" : "",
                o.fifo > 0 ? ("drop-tail of " + std::to_string(o.fifo) + " packets").c_str()
                           : "default queues");
    bool complete = true;
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      std::printf("%zu %.6f\n", i, arrivals[i].end_seconds);
      complete = complete && arrivals[i].end_seconds >= 0;
    }
    return complete ? 0 : 3;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
