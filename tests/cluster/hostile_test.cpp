// Attacks on a swarm that trains, by strangers, revoked volunteers, and admitted hosts that
// misbehave. Each attacker is refused for the right reason, and neither training nor memory
// suffers.
#include "actors/dht/messages.hpp"
#include "actors/host_messages.hpp"
#include "actors/messages.hpp"
#include "netem/coordinator.hpp"
#include "netem/wire/message_codec.hpp"
#include "tests/cluster/support/attacker.hpp"

#include <caf/actor_system.hpp>
#include <caf/error.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <openssl/ssl.h>
#include <sys/resource.h>

#include <algorithm>
#include <future>

using namespace shoal;
using namespace shoal::cluster;
using namespace shoal::netem::wire;

namespace {

constexpr std::uint64_t epochs = 250;

std::string handshake_series(std::string_view reason) {
  return fmt::format("shoal_handshakes_refused_total{{reason=\"{}\"}}", reason);
}
std::string frame_series(std::string_view reason) {
  return fmt::format("shoal_frames_refused_total{{reason=\"{}\"}}", reason);
}

/// The swarm, the attacked node, and the attacks so far.
struct attack {
  explicit attack(swarm& on) : reef(on), target(on.address_of("p-0")), port(on.port_of("p-0")) {}

  hello hello_of(const std::string& name) { return reef.hello_of(name, ++links); }
  std::string next_name() { return fmt::format("mallory-{}", ++names); }
  std::shared_ptr<const tls_credentials> as(const identity& who) const {
    return credentials_of(who, reef.moderator().certificate_pem());
  }
  std::shared_ptr<const tls_credentials> admitted(const std::string& name) const {
    return as(reef.admit(name));
  }

  /// A host with a good certificate sends a hello that `change` has altered.
  void says(const std::string& reason, const std::function<void(hello&)>& change) {
    CAPTURE(reason);
    const auto name = next_name();
    auto says = hello_of(name);
    change(says);
    false_host mallory(target, admitted(name));
    mallory.greet(says);
    CHECK(mallory.refused() == reason);
    ++handshakes[reason];
  }
  /// A host with a good certificate whose first frame on the control pipe is not a correct hello.
  void begins_with(const std::string& what,
                   const std::function<void(false_host&, const hello&)>& begin) {
    CAPTURE(what);
    const auto name = next_name();
    false_host mallory(target, admitted(name));
    begin(mallory, hello_of(name));
    CHECK(mallory.refused() == "not_ours");
    ++handshakes["not_ours"];
  }
  /// An admitted host whose link is up sends bytes that no correct host sends.
  void misbehaves(const std::string& what, std::string_view reason,
                  const std::function<void(false_host&, const hello& theirs)>& then) {
    CAPTURE(what);
    const auto name = next_name();
    const auto credentials = admitted(name);
    {
      false_host mallory(target, credentials);
      mallory.greet(hello_of(name));
      const auto theirs = mallory.answer();
      INFO(mallory.why_closed());
      REQUIRE(theirs.has_value());
      then(mallory, *theirs);
      CHECK(mallory.closed());
    }
    ++frames[std::string(reason)];
    // The host is banned for a while.
    false_host again(target, credentials);
    again.greet(hello_of(name));
    const auto refused = again.refused();
    INFO(again.why_closed());
    CHECK(refused == "banned");
    ++handshakes["banned"];
  }

  swarm& reef;
  const std::string target;
  const std::uint16_t port;
  std::uint64_t links = 0, names = 0;
  std::map<std::string, std::uint64_t> handshakes, frames; // the least counts to expect
};

template <class Message>
std::string encoded(caf::actor_system& system, Message what) {
  auto message = caf::make_message(std::move(what));
  const auto out = encode(system, message.content());
  return {out.binary.begin(), out.binary.end()};
}

void strangers(attack& a) {
  // Bytes without TLS.
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        std::string("SSH-2.0-x\r\n"), std::string("\xff\xff\xff\xff", 4),
        std::string(1 << 20, '\0')}) {
    const raw_connection stranger(a.port);
    stranger.send(bytes);
    CHECK(stranger.closed());
    ++a.handshakes["garbage"];
  }
  // A TLS record of the largest size, with no TLS in it.
  {
    const raw_connection stranger(a.port);
    stranger.send(std::string("\x16\x03\x01\xff\xff", 5) + std::string(70000, 'x'));
    CHECK(stranger.closed());
    ++a.handshakes["handshake"];
  }
  CHECK(tls_handshake(a.port, {}, TLS1_3_VERSION) != "");
  CHECK(tls_handshake(a.port, a.reef.admit(a.next_name()), TLS1_2_VERSION) != "");
  a.handshakes["handshake"] += 2;
  // The same handshake with a certificate and TLS 1.3 succeeds.
  CHECK(tls_handshake(a.port, a.reef.admit(a.next_name()), TLS1_3_VERSION) == "");
}

void certificates(attack& a) {
  const auto refused = [&](const identity& who, const std::string& name) {
    false_host mallory(a.target, a.as(who));
    mallory.greet(a.hello_of(name));
    return mallory.refused();
  };
  const auto expect = [&](const std::string& reason, const identity& who, const std::string& name) {
    CAPTURE(reason);
    CHECK(refused(who, name) == reason);
    ++a.handshakes[reason];
  };
  const auto own = moderator::make("mallory", swarm::utc_ns(), 24h);
  REQUIRE(own.ok());
  const identity self_signed{own->certificate_pem(), std::string(own->key_pem().view())};
  expect("not_admitted", self_signed, "mallory");
  const auto key = signing_key::make();
  const auto elsewhere = own->admit("p-1", key.public_key(), swarm::utc_ns(), 1h);
  const auto late = a.reef.moderator().admit(
      "late", key.public_key(), swarm::utc_ns() - std::chrono::nanoseconds(48h).count(), 24h);
  REQUIRE((elsewhere.ok() && late.ok()));
  const std::string pem(key.pem().view());
  expect("not_admitted", {*elsewhere, pem}, "p-1");
  expect("expired", {*late, pem}, "late");
  expect("borrowed_name", a.reef.admit(a.next_name()), "p-1");
  // The certificate is revoked while the swarm trains, and the node reads the new list.
  const auto former = a.reef.admit("former");
  a.reef.revoke(former);
  expect("revoked", former, "former");
}

void bad_beginnings(attack& a) {
  a.says("other_scenario", [](hello& says) { says.scenario[0] ^= 1; });
  a.says("clock_off", [](hello& says) { says.utc_ns += std::chrono::nanoseconds(1h).count(); });
  a.says("clock_off", [](hello& says) { says.utc_ns -= std::chrono::nanoseconds(1h).count(); });
  a.begins_with("a ping", [](false_host& mallory, const hello&) {
    for (const int pipe : {0, 1}) mallory.send(pipe, frame_writer(frame_kind::ping).done());
  });
  a.begins_with("a message", [](false_host& mallory, const hello& mine) {
    mallory.send(0, message_to(mine, binary_of("shoal::tick")));
    mallory.send(1, message_to(mine, binary_of("shoal::tick")));
  });
  a.begins_with("two hellos", [](false_host& mallory, const hello& mine) {
    mallory.send(0, to_frame(mine));
    mallory.send(0, to_frame(mine));
  });
  a.begins_with("half a hello", [](false_host& mallory, const hello& mine) {
    auto half = to_frame(mine);
    half.head.resize(half.head.size() / 2);
    mallory.send(0, half);
  });
  a.begins_with("a hello with more behind it", [](false_host& mallory, const hello& mine) {
    auto more = to_frame(mine);
    more.head.push_back('x');
    mallory.send(0, more);
  });
  a.begins_with("a hello of 60 kilobytes", [](false_host& mallory, const hello& mine) {
    auto more = to_frame(mine);
    more.head.resize(60'000);
    mallory.send(0, more);
  });
  {
    const auto longer = a.next_name();
    false_host mallory(a.target, a.admitted(longer));
    auto more = to_frame(a.hello_of(longer));
    more.head.resize(1 << 19);
    mallory.send(0, more);
    CHECK(mallory.refused() == "closed");
    ++a.handshakes["not_ours"];
  }
  // Addresses that no resolver may see, and a name that no terminal may see.
  for (const char* address : {"unix:/tmp/socket", "dns:///example.org:7000", "lab\xff:7000"})
    a.begins_with(address, [&](false_host& mallory, const hello& mine) {
      auto says = mine;
      says.address = address;
      for (const int pipe : {0, 1}) mallory.send(pipe, to_frame(says));
    });
  a.begins_with("a name with a command for a terminal", [](false_host& mallory, const hello& mine) {
    auto says = mine;
    says.name = "mallory\x1b[31m";
    mallory.greet(says);
  });
  const auto name = a.next_name();
  false_host mallory(a.target, a.admitted(name));
  auto newer = to_frame(a.hello_of(name));
  newer.head[5] = static_cast<char>(hello::version + 1);
  mallory.send(0, newer);
  CHECK(mallory.refused() == "other_version");
  ++a.handshakes["other_version"];
}

void bad_frames(attack& a) {
  const auto bad_frame = [&](const std::string& what,
                             const std::function<void(false_host&, const hello&)>& then) {
    a.misbehaves(what, "bad_frame", then);
  };
  bad_frame("a piece of nothing", [](false_host& mallory, const hello&) {
    auto piece = frame_writer(frame_kind::piece).done();
    piece.head.resize(64);
    mallory.send(1, piece);
  });
  bad_frame("a message of 4 GB", [](false_host& mallory, const hello&) {
    message_head head;
    head.more = 1;
    head.beside = std::uint64_t{4} << 30;
    mallory.send(1, message_frame(head, std::string(512, 'x')));
  });
  bad_frame("a binary form of 4 GB", [](false_host& mallory, const hello&) {
    message_head head;
    head.binary = 0xffffffff;
    mallory.send(0, message_frame(head, std::string(512, 'x')));
  });
  bad_frame("a binary form beyond the body", [](false_host& mallory, const hello&) {
    message_head head;
    head.binary = 4096;
    mallory.send(0, message_frame(head, std::string(512, 'x')));
  });
  bad_frame("sizes whose sum wraps around", [](false_host& mallory, const hello&) {
    message_head head;
    head.binary = 16;
    head.beside = ~std::uint64_t{0} - 7;
    mallory.send(0, message_frame(head, std::string(8, 'x')));
  });
  bad_frame("another message before the pieces of one have come",
            [](false_host& mallory, const hello&) {
              message_head head;
              head.more = 1;
              head.beside = 1 << 20;
              for (int i = 0; i < 2; ++i)
                mallory.send(1, message_frame(head, std::string(512, 'x')));
            });
  bad_frame("a second hello on the bulk pipe", [&](false_host& mallory, const hello&) {
    mallory.send(1, to_frame(a.hello_of("p-1")));
  });
  bad_frame("a kind that there is not", [](false_host& mallory, const hello&) {
    mallory.send(0, frame{{'\x7f'}, {}});
  });
  bad_frame("a watch without a number", [](false_host& mallory, const hello&) {
    mallory.send(0, frame_writer(frame_kind::watch).done());
  });
}

void bad_messages(attack& a) {
  netem::system_config config(netem::time_mode::wall_clock);
  actors::register_messages(config);
  caf::actor_system system(config);
  const auto bad_message = [&](const std::string& what, std::string binary) {
    a.misbehaves(what, "bad_message",
                 [binary = std::move(binary)](false_host& mallory, const hello& theirs) {
                   mallory.send(0, message_to(theirs, binary));
                 });
  };
  // Messages that would end an actor, or report another actor's end.
  bad_message("exit_msg", encoded(system, caf::exit_msg{{}, caf::exit_reason::kill}));
  bad_message("down_msg", encoded(system, caf::down_msg{{}, caf::exit_reason::kill}));
  bad_message("error", encoded(system, caf::make_error(caf::sec::runtime_error)));
  // Messages that an actor sends only to itself and to actors of its host.
  bad_message("tick", encoded(system, actors::tick{}));
  bad_message("store", encoded(system, actors::store{}));
  bad_message("a type that there is not", binary_of("shoal::secret"));
  auto cut = encoded(system, actors::records_query{});
  cut.pop_back();
  bad_message("a message without its end", cut);
  bad_message("a message with more behind it",
              encoded(system, actors::records_query{}) + "xxxxxxxx");
  bad_message("no message at all", std::string(200, '\xff'));
}

/// Sends bytes that are not frames on connections of their own, and a frame that never ends.
void bad_framing(attack& a) {
  const std::string four_gigabytes("\xff\xff\xff\xff\0\0\0\0", 8);
  CHECK(send_unframed(a.port, a.reef.admit(a.next_name()), four_gigabytes));
  CHECK(send_unframed(a.port, a.reef.admit(a.next_name()), std::string(8 << 20, 'x')));
  a.handshakes["not_ours"] += 2;
  // Both wait for the time limit of a hello.
  const std::string long_one("\0\xff\0\0\0\0\0\0", 8);
  auto half = std::async(std::launch::async, [&, who = a.reef.admit(a.next_name())] {
    return send_unframed(a.port, who, long_one + std::string(1000, 'x'));
  });
  CHECK(send_unframed(a.port, a.reef.admit(a.next_name()), "x"));
  CHECK(half.get());
  a.handshakes["no_hello"] += 2;
}

} // namespace

TEST_CASE(
    "a swarm trains on while strangers and former volunteers and misbehaving hosts attack a node") {
  swarm reef(attacked_swarm(3, epochs));
  for (const char* name : {"p-0", "p-1", "p-2", "shard-0"}) reef.start(name, {"--quiet"});
  REQUIRE_MESSAGE(wait_until([&] { return reef.metrics("p-0")["shoal_epoch"] >= 1; }),
                  reef.node("p-0").err());
  attack a(reef);
  const auto began = std::chrono::steady_clock::now();

  // These attacks take time to detect, so they run beside the others: silent connections, silent
  // streams, and handshakes that stop in the middle.
  constexpr std::size_t half_open = 1000;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4 * half_open);
  setrlimit(RLIMIT_NOFILE, &files);
  REQUIRE_MESSAGE(files.rlim_cur > 3 * half_open,
                  "this user may not open enough files: ulimit -Hn");
  std::vector<raw_connection> silent, stuck;
  for (std::size_t i = 0; i < half_open; ++i) {
    silent.emplace_back(a.port);
    stuck.emplace_back(a.port).send(std::string("\x16\x03\x01\x02\x00\x01\x00", 7));
  }
  false_host speechless(a.target, a.admitted(a.next_name()));
  const auto half_name = a.next_name();
  false_host half(a.target, a.admitted(half_name));
  half.send(0, to_frame(a.hello_of(half_name)));

  const auto count_of = [&](const std::string& name) { return reef.metrics("p-0")[name]; };
  const std::pair<std::string, void (*)(attack&)> acts[] = {
      {"strangers", strangers},           {"certificates", certificates},
      {"bad beginnings", bad_beginnings}, {"bad frames", bad_frames},
      {"bad messages", bad_messages},     {"bad framing", bad_framing}};
  for (const auto& [what, act] : acts) {
    const auto start = std::chrono::steady_clock::now();
    act(a);
    MESSAGE(what << ": "
                 << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()
                 << " s");
  }
  CHECK(speechless.closed());
  CHECK(half.closed());
  a.handshakes["no_hello"] += 3;
  for (const auto& each : silent) REQUIRE(each.closed());
  for (const auto& each : stuck) REQUIRE(each.closed());

  for (const auto& [reason, wanted] : a.handshakes) {
    CAPTURE(reason);
    CAPTURE(wanted);
    CHECK(wait_until(
        [&] { return count_of(handshake_series(reason)) >= static_cast<double>(wanted); }, 20s));
  }
  for (const auto& [reason, wanted] : a.frames) {
    CAPTURE(reason);
    CHECK(wait_until([&] { return count_of(frame_series(reason)) >= static_cast<double>(wanted); },
                     20s));
  }
  // Each of the thousands of connections is counted under some limit.
  CHECK(wait_until([&] {
    const auto now = reef.metrics("p-0");
    const auto of = [&](const char* reason) { return now.at(handshake_series(reason)); };
    return of("silent") + of("too_many") + of("handshake") >= 2.0 * half_open;
  }));
  const auto after = reef.metrics("p-0");
  CHECK(after.at(handshake_series("silent")) >= 1);
  CHECK(after.at(handshake_series("too_many")) >= 1);
  MESSAGE("attacked from epoch 1 to epoch "
          << after.at("shoal_epoch") << ", "
          << std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()
          << " s");
  CHECK(after.at("shoal_epoch") < epochs);

  reef.check_trained(epochs);
  const auto memory_of = [&](const char* name) {
    return reef.summary(name).at("peak_rss_bytes").get<double>() / (1 << 20);
  };
  MESSAGE("most memory: " << memory_of("p-0") << " MiB; " << memory_of("p-1")
                          << " MiB of a node that was not attacked");
  CHECK(memory_of("p-0") < 2 * memory_of("p-1"));
  // The other nodes notice nothing, and no link among honest nodes was lost before the end.
  CHECK(reef.node("p-1").err().find("it broke the protocol") == std::string::npos);
}
