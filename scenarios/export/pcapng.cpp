// The traffic of a run as packets, for Wireshark and tshark. Shoal sends no packets in virtual
// time, so the packets are made up. A bulk transfer is cut into the largest IP packets, spread
// evenly over the time in which it left. A small message is cut alike, at the time when it was
// sent. A packet is IPv4 and TCP. It is captured without its payload, and its length counts the
// payload.
//   address of host i (from 0): 10.(i+1) in three bytes; port: 7000 + number of the actor
// Names of hosts are in a name resolution block. The comment of a packet names the message.
// Source: draft-ietf-opsawg-pcapng (blocks), RFC 791 and RFC 9293 (headers).
#include "scenarios/export/export_formats.hpp"
#include "scenarios/observe/run_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace shoal::scenarios {

// A format may name its parts as other formats name theirs.
namespace pcapng_format_parts {
namespace {

constexpr std::size_t headers = 40; // IPv4 and TCP without options
constexpr std::uint64_t most_payload = 65535 - headers;
constexpr std::size_t most_packets = 5'000'000;

std::string little(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i & 255);
  return out;
}
std::string big(std::uint64_t value, int bytes) {
  std::string out = little(value, bytes);
  return {out.rbegin(), out.rend()};
}
std::string padded(std::string bytes) {
  bytes.resize((bytes.size() + 3) / 4 * 4, '\0');
  return bytes;
}

std::string block(std::uint32_t type, const std::string& body) {
  const auto length = little(body.size() + 12, 4);
  return little(type, 4) + length + body + length;
}

std::string option(std::uint32_t code, const std::string& value) {
  return little(code, 2) + little(value.size(), 2) + padded(value);
}

std::string address(std::size_t host) {
  return big(10U << 24 | (host + 1), 4);
}

std::uint32_t port(const std::string& actor) {
  std::uint32_t number = 0;
  const auto slash = actor.find('/');
  if (slash != std::string::npos)
    std::from_chars(actor.data() + slash + 1, actor.data() + actor.size(), number);
  return 7000 + number % 50000;
}

struct packet {
  duration at{};
  std::size_t from = 0, to = 0;
  std::uint32_t from_port = 0, to_port = 0, sequence = 0, payload = 0;
  std::string comment;
};

class capture {
public:
  explicit capture(const recorded_run& run) : run_(run) {}

  /// Adds `bytes` from one actor to another, evenly from `begin` to `end`.
  void add(const std::string& from, const std::string& to, std::uint64_t bytes, duration begin,
           duration end, const std::string& comment) {
    const std::uint64_t count =
        std::max<std::uint64_t>(1, (bytes + most_payload - 1) / most_payload);
    packet next{begin, run_.host_of(from), run_.host_of(to), port(from), port(to), 0, 0, comment};
    auto& sequence = sequences_[{next.from, next.from_port, next.to, next.to_port}];
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto payload = std::min(bytes - i * most_payload, most_payload);
      next.at = begin + duration{static_cast<std::int64_t>(
                            static_cast<double>((end - begin).count()) *
                            static_cast<double>(i + 1) / static_cast<double>(count))};
      next.payload = static_cast<std::uint32_t>(payload);
      next.sequence = sequence;
      sequence += next.payload; // wraps, as TCP's does
      packets_.push_back(next);
    }
  }

  std::size_t size() const { return packets_.size(); }

  std::string text() {
    std::stable_sort(packets_.begin(), packets_.end(),
                     [](const packet& a, const packet& b) { return a.at < b.at; });
    constexpr std::uint64_t unknown_length = ~0ULL;
    constexpr std::uint32_t raw_ip = 101;
    std::string out = block(0x0a0d0d0a, little(0x1a2b3c4d, 4) + little(1, 2) + little(0, 2) +
                                            little(unknown_length, 8));
    // Nanoseconds since the run began.
    out += block(1, little(raw_ip, 2) + little(0, 2) + little(headers, 4) + option(2, run_.name) +
                        option(9, std::string(1, 9)) + little(0, 4));
    std::string names;
    for (std::size_t i = 0; i < run_.hosts.size(); ++i)
      names += option(1, address(i) + run_.hosts[i] + '\0');
    out += block(4, names + little(0, 4));
    for (const auto& each : packets_) out += written(each);
    return out;
  }

private:
  static std::string written(const packet& what) {
    const auto at = static_cast<std::uint64_t>(what.at.count());
    return block(6, little(0, 4) + little(at >> 32, 4) + little(at & 0xffffffff, 4) +
                        little(headers, 4) + little(headers + what.payload, 4) + header(what) +
                        option(1, what.comment) + little(0, 4));
  }

  static std::string header(const packet& what) {
    const auto ip = [&](std::uint32_t checksum) {
      constexpr std::uint32_t no_fragments = 0x4000, time_to_live = 64, tcp = 6;
      return big(0x4500, 2) + big(headers + what.payload, 2) + big(0, 2) + big(no_fragments, 2) +
             big(time_to_live, 1) + big(tcp, 1) + big(checksum, 2) + address(what.from) +
             address(what.to);
    };
    std::uint32_t sum = 0;
    const std::string bare = ip(0);
    for (std::size_t i = 0; i < bare.size(); i += 2)
      sum += static_cast<unsigned char>(bare[i]) << 8 | static_cast<unsigned char>(bare[i + 1]);
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    constexpr std::uint32_t five_words = 5, push_and_ack = 0x18;
    return ip(~sum & 0xffff) + big(what.from_port, 2) + big(what.to_port, 2) +
           big(what.sequence, 4) + big(0, 4) + big(five_words << 12 | push_and_ack, 2) +
           big(0xffff, 2) + big(0, 2) + big(0, 2);
  }

  const recorded_run& run_;
  std::vector<packet> packets_;
  std::map<std::tuple<std::size_t, std::uint32_t, std::size_t, std::uint32_t>, std::uint32_t>
      sequences_;
};

result<std::string> write(const recorded_run& run, const std::filesystem::path& to) {
  capture out(run);
  std::set<std::tuple<std::string, std::string, duration>> bulk;
  for (const auto& each : run.transfers) {
    bulk.emplace(each.from, each.to, each.sent);
    out.add(each.from, each.to, each.bytes, each.begun, each.left,
            fmt::format("{}, transfer {}", each.type, each.number));
    if (out.size() > most_packets)
      return failure{fmt::format("'{}' has more than {} packets: run the scenario with a smaller "
                                 "record.transfers",
                                 run.directory.string(), most_packets)};
  }
  // The log of messages has the message that a transfer carried, too.
  for (const auto& each : run.messages)
    if (!bulk.contains({each.from, each.to, each.sent}))
      out.add(each.from, each.to, each.bytes, each.sent, each.sent, each.type);
  if (auto written = write_file(to, out.text()); !written) return failure{written.error()};
  return fmt::format("{} packets of {} transfers{}", out.size(), run.transfers.size(),
                     run.messages.empty() ? "; record.events: all adds the small messages"
                                          : " and of all messages");
}

} // namespace
} // namespace pcapng_format_parts

export_format pcapng_format() {
  using namespace pcapng_format_parts;
  return {"pcapng", "FILE", "packets for Wireshark, made up from the transfers and messages",
          "run.pcapng", write};
}

} // namespace shoal::scenarios
