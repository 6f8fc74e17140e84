// Attacks by a member of the swarm: its keys are good, and it says whatever it likes. No honest
// node ends, nobody speaks for another host, training goes on, and operators get answers.
#include "kernels/base/rng.hpp"
#include "netem/fabric.hpp"
#include "netem/wire/certificates.hpp"
#include "netem/wire/context.hpp"
#include "netem/wire/end_to_end.hpp"
#include "netem/wire/host_link.hpp"
#include "netem/wire/key_files.hpp"
#include "tests/cluster/support/attacker.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <map>
#include <mutex>
#include <optional>

using namespace shoal;
using namespace shoal::cluster;
using namespace shoal::netem::wire;

namespace {

own_keys keys_in(const std::string& folder) {
  const std::filesystem::path path(folder);
  const auto key = signing_key::read(e2e::slurp(path / node_key_file));
  REQUIRE(key.ok());
  return {std::make_shared<const signing_key>(*key), e2e::slurp(path / node_certificate_file)};
}

node_key node_of(const own_keys& keys, std::uint32_t incarnation) {
  const auto& key = keys.key->public_key();
  const std::string identity(reinterpret_cast<const char*>(key.data()), key.size());
  return key_of(netem::fabric::node_of(identity, incarnation));
}

std::string refused_handshakes(std::string_view reason) {
  return fmt::format("shoal_handshakes_refused_total{{reason=\"{}\"}}", reason);
}
std::string refused_frames(std::string_view reason) {
  return fmt::format("shoal_frames_refused_total{{reason=\"{}\"}}", reason);
}

/// The metrics of a process that the swarm did not start.
series metrics_of(node_process& of) {
  const std::string before = "metrics: http://127.0.0.1:";
  REQUIRE_MESSAGE(of.says(before), of.err());
  const auto err = of.err();
  const auto port = std::stoul(err.substr(err.find(before) + before.size()));
  return read_series(http_get(static_cast<std::uint16_t>(port), "/metrics"));
}

/// Refuses every link for one reason.
false_listener::on_frame refuses(refusal why, std::string text) {
  return [why, text](netem::wire::pipe& through, frame_kind, const payload&) {
    through.send(refused_frame(why, text));
    through.finish();
  };
}

/// The two pipes of each link that was dialled, once both hellos have come. A host answers then.
class arriving_links {
public:
  struct both {
    std::uint64_t link = 0;
    std::uint32_t incarnation = 0; // the incarnation of the host that dialled
    netem::wire::pipe* pipes[2]{};
  };
  std::optional<both> came(netem::wire::pipe& through, frame_kind kind, const payload& bytes) {
    bool other_version = false;
    const auto theirs = read_hello(bytes.bytes(), other_version);
    if (kind != frame_kind::hello || !theirs) return {};
    std::lock_guard guard(mutex_);
    auto& out = links_[theirs->link];
    out.link = theirs->link;
    out.incarnation = theirs->incarnation;
    out.pipes[through.kind() == pipe_kinds[1]] = &through;
    return out.pipes[0] != nullptr && out.pipes[1] != nullptr ? std::optional(out) : std::nullopt;
  }

private:
  std::mutex mutex_;
  std::map<std::uint64_t, both> links_;
};

/// Waits until the node has dialled the listener a few times more.
bool dials_again(const false_listener& mallory, std::size_t times = 6) {
  const auto before = mallory.opened();
  return wait_until([&] { return mallory.opened() >= before + times; });
}

} // namespace

TEST_CASE("a member's refusal ends no node that has another way in, and prints no commands") {
  swarm reef(endless_swarm(4));
  for (const char* name : {"p-0", "shard-0"}) reef.start(name, {"--quiet"});
  const std::pair<std::string, refusal> cases[] = {
      {"p-1", refusal::revoked}, {"p-2", refusal::clock_off}, {"p-3", refusal::other_version}};
  for (const auto& [name, why] : cases) {
    CAPTURE(name_of(why));
    const false_listener mallory(reef.keys_of("mallory"), refuses(why, "\x1b[31mgo\nerror: away"));
    auto& victim = reef.start(name, {"--quiet", "--join", mallory.at()});
    CHECK(victim.says(fmt::format("no link with {}: {}, \\x1b[31mgo\\x0aerror: away", mallory.at(),
                                  name_of(why))));
    CHECK(dials_again(mallory));
    CHECK(victim.err().find('\x1b') == std::string::npos);
    CHECK_MESSAGE(wait_until([&] { return reef.metrics(name)["shoal_epoch"] >= 1; }), victim.err());
    CHECK(victim.running());
    victim.signal(SIGKILL);
    victim.wait();
  }
}

TEST_CASE("a node whose only way in has accepted it once outlives all later refusals") {
  // This is what a host does whose clock was set forward.
  swarm reef(endless_swarm(2));
  const auto keys = reef.keys_of("mallory");
  auto says = reef.hello_of("mallory", 0);
  arriving_links links;
  std::atomic<int> accepted{0};
  const false_listener mallory(
      keys, [&](netem::wire::pipe& through, frame_kind kind, const payload& bytes) {
        const auto came = links.came(through, kind, bytes);
        if (!came) return;
        const bool first = ++accepted == 1;
        auto mine = says;
        mine.link = came->link;
        for (auto* each : came->pipes) {
          each->send(first ? to_frame(mine)
                           : refused_frame(refusal::clock_off, "its clock is 3min behind"));
          each->finish();
        }
      });
  reef.join_via({});
  auto victim =
      reef.start_other("victim", {"--quiet", "--name", "p-1", "--keys", reef.keys_of("p-1"),
                                  "--listen", "127.0.0.1:0", "--join", mallory.at()});
  CHECK_MESSAGE(victim->says("clock_off, its clock is 3min behind"), victim->err());
  CHECK(dials_again(mallory));
  CHECK_MESSAGE(victim->running(), victim->err());
}

TEST_CASE("a revoked member's refusal is not believed") {
  swarm reef(endless_swarm(2));
  const false_listener mallory(reef.keys_of("mallory"), refuses(refusal::other_scenario, "x"));
  reef.revoke_at("p-1", "mallory");
  auto victim =
      reef.start_other("victim", {"--quiet", "--name", "p-1", "--keys", reef.keys_of("p-1"),
                                  "--listen", "127.0.0.1:0", "--join", mallory.at()});
  CHECK_MESSAGE(victim->says("revoked, the certificate of mallory was revoked"), victim->err());
  CHECK(dials_again(mallory));
  CHECK_MESSAGE(victim->running(), victim->err());
  // The same refusal by a member counts, since it is the only way in.
  const false_listener honest(reef.keys_of("p-0"), refuses(refusal::other_version, "it is old"));
  auto alone = reef.start_other("alone", {"--quiet", "--name", "p-1", "--keys", reef.keys_of("p-1"),
                                          "--listen", "127.0.0.1:0", "--join", honest.at()});
  CHECK(alone->wait() == 3);
}

TEST_CASE("a member cannot speak for another host to a host that only dials") {
  swarm reef(endless_swarm(2));
  const auto keys = keys_in(reef.keys_of("mallory"));
  auto mine = reef.hello_of("mallory", 0);
  mine.relays = 1; // the false relay offers itself, so its relayed frames are read
  const auto shard = node_of(keys_in(reef.keys_of("shard-0")), mine.incarnation);
  const auto victim_keys = keys_in(reef.keys_of("p-1"));
  auto false_hello = reef.hello_of("shard-0", 7);
  std::atomic<int> sent{0};
  arriving_links links;
  const false_listener mallory(reef.keys_of("mallory"), [&](netem::wire::pipe& through,
                                                            frame_kind kind, const payload& bytes) {
    const auto came = links.came(through, kind, bytes);
    if (!came) return;
    auto answer = mine;
    answer.link = came->link;
    for (auto* each : came->pipes) each->send(to_frame(answer));
    const auto victim = node_of(victim_keys, came->incarnation);
    const auto own = node_of(keys, mine.incarnation + 1);
    for (std::uint8_t which = 0; which < 2; ++which) {
      const auto relayed = [&](const node_key& from, std::uint64_t link, const frame& inner) {
        frame out{to_bytes(relayed_head{which, from, link}), {}};
        out.head.insert(out.head.end(), inner.head.begin(), inner.head.end());
        came->pipes[which]->send(std::move(out));
        ++sent;
      };
      // A plain hello in the name of the shard, as without keys.
      relayed(shard, 7, to_frame(false_hello));
      // A greeting in the name of the shard's node, by the liar's own key.
      end_to_end forged(keys, {shard, victim, 8, which, true});
      relayed(shard, 8, *forged.protect(to_frame(false_hello)));
      // A true greeting of its own node, with the shard's name in the hello.
      auto borrowed = false_hello;
      borrowed.link = 9;
      end_to_end true_greeting(keys, {own, victim, 9, which, true});
      relayed(own, 9, *true_greeting.protect(to_frame(borrowed)));
    }
  });
  auto& victim = reef.start("p-1", {"--quiet", "--join", mallory.at()});
  REQUIRE_MESSAGE(victim.says("linked with mallory"), victim.err());
  // A host that listens takes no relayed links at all.
  CHECK(wait_until([&] { return sent >= 6; }));
  victim.signal(SIGKILL);
  victim.wait();

  sent = 0;
  auto dials = reef.start_other("dials", {"--quiet", "--name", "p-1", "--keys", reef.keys_of("p-1"),
                                          "--outbound-only", "--join", mallory.at(), "--metrics",
                                          "127.0.0.1:0"});
  REQUIRE_MESSAGE(dials->says("linked with mallory"), dials->err());
  const auto count = [&](const std::string& series) { return metrics_of(*dials)[series]; };
  CHECK(wait_until([&] { return sent >= 6; }));
  CHECK(wait_until([&] { return count(refused_frames("bad_seal")) >= 2; }));
  CHECK(wait_until([&] { return count(refused_handshakes("borrowed_name")) >= 1; }));
  CHECK(dials->err().find("linked with shard-0") == std::string::npos);
  CHECK(count("shoal_links_open") == 1);
  CHECK(dials->running());
}

TEST_CASE("two members that only dial know and reach each other over a relay with keys") {
  swarm reef(endless_swarm(3));
  reef.start("p-0", {"--quiet", "--relay", "1GB"});
  reef.start("shard-0", {"--quiet"});
  const auto dials = [&](const std::string& name) {
    return reef.start_other(name, {"--quiet", "--name", name, "--keys", reef.keys_of(name),
                                   "--outbound-only", "--join", reef.address_of("p-0"), "--metrics",
                                   "127.0.0.1:0"});
  };
  const auto one = dials("p-1"), two = dials("p-2");
  // Each has links with the relay, the data shard, and the other one, which nobody can dial.
  for (const auto& each : {one.get(), two.get()})
    CHECK_MESSAGE(wait_until([&] { return metrics_of(*each)["shoal_links_open"] >= 3; }),
                  each->err());
  CHECK(wait_until([&] { return metrics_of(*one)["shoal_epoch"] >= 3; }));
  CHECK(one->running());
  CHECK(two->running());
  CHECK(one->err().find("is not the other side's") == std::string::npos);
}

TEST_CASE("a swarm trains on while a member refuses and floods and lies about names and relays") {
  swarm reef(endless_swarm(3));
  const std::vector<std::string> honest{"p-0", "p-1", "p-2", "shard-0"};
  for (const auto& name : honest) reef.start(name, {"--quiet"});
  const auto epoch = [&](const std::string& name) { return reef.metrics(name)["shoal_epoch"]; };
  for (const char* name : {"p-0", "p-1", "p-2"})
    REQUIRE_MESSAGE(wait_until([&] { return epoch(name) >= 2; }), reef.node(name).err());
  std::map<std::string, double> memory, epochs;
  for (const auto& name : honest) {
    memory[name] = static_cast<double>(reef.node(name).peak_memory_bytes());
    epochs[name] = epoch(name);
  }

  // The member refuses each host that dials, with a different reason each time.
  std::atomic<unsigned> refusals{0};
  const false_listener listens(reef.keys_of("mallory"),
                               [&](netem::wire::pipe& through, frame_kind, const payload&) {
                                 const auto why = 1 + refusals++ % (refusal_names.size() - 1);
                                 through.send(refused_frame(static_cast<refusal>(why), "go away"));
                                 through.finish();
                               });
  const auto ca = reef.moderator().certificate_pem();
  const auto guest = reef.keys_of("guest");
  auto random = stream(5, "hostile member");
  // By night the attack lasts ten minutes. Memory may still grow in the first of them, while each
  // table fills, and not after that.
  const auto lasts = std::chrono::seconds(tries(10, 600));
  const auto begins = std::chrono::steady_clock::now(), ends = begins + lasts;
  std::map<std::string, double> early, late, early_epochs;
  const auto note_memory = [&](std::map<std::string, double>& into) {
    for (const auto& name : honest)
      into[name] = static_cast<double>(reef.node(name).resident_memory_bytes());
  };
  std::uint64_t links = 0, up = 0, asked = 0, answered = 0;
  const own_keys own = keys_in(reef.keys_of("mallory"));
  const auto own_credentials =
      credentials_of({own.certificate, std::string(own.key->pem().view())}, ca);
  while (std::chrono::steady_clock::now() < ends) {
    if (early.empty() && std::chrono::steady_clock::now() >= begins + lasts / 10) {
      note_memory(early);
      for (const auto& each : honest) early_epochs[each] = epoch(each);
    }
    const auto& target = honest[random.below(honest.size())];
    // The member is banned for its faults, so others of the same kind take turns with it.
    const bool fresh = links % 4 != 0;
    const auto name = fresh ? fmt::format("mallory-{}", links) : std::string("mallory");
    false_host mallory(reef.address_of(target),
                       fresh ? credentials_of(reef.admit(name), ca) : own_credentials);
    auto says = reef.hello_of(name, ++links);
    says.address = listens.at();
    says.relays = 1;
    says.service = 1 + random.below(20);
    if (random.below(4) == 0) says.name = "p-0"; // another's name
    if (random.below(4) == 0) {
      mallory.send(0, refused_frame(refusal::revoked, "you are revoked"));
      continue;
    }
    mallory.greet(says);
    const auto theirs = says.name == name ? mallory.answer() : std::nullopt;
    if (!theirs) continue;
    ++up;
    // Lies about others, and links of others that there are not.
    for (std::uint64_t i = 0; i < 300; ++i) {
      node_key other;
      other.incarnation = 1 + static_cast<std::uint32_t>(random.below(1000));
      for (auto& byte : other.host) byte = static_cast<std::uint8_t>(random.next());
      mallory.send(0, frame_writer(frame_kind::node_at)
                          .put(other)
                          .put(std::string_view("p-1"))
                          .put(std::string_view(listens.at()))
                          .done());
      frame relayed{to_bytes(relayed_head{0, other, i}), {}};
      const auto inner = to_frame(says).head;
      relayed.head.insert(relayed.head.end(), inner.begin(), inner.end());
      mallory.send(0, relayed);
      mallory.send(0, frame_writer(frame_kind::where_is).put(other).done());
    }
    // A flood, and then garbage.
    for (std::uint64_t i = 0; i < 20'000; ++i)
      mallory.send(static_cast<int>(i % 2), frame_writer(frame_kind::ping).put(i).done());
    std::vector<std::byte> garbage(1 + random.below(5000));
    for (auto& each : garbage) each = static_cast<std::byte>(random.next());
    mallory.send(static_cast<int>(random.below(2)), garbage);
    if (links % 8 == 0) {
      ++asked;
      node_process status(reef.folder().path(), fmt::format("status-{}", asked),
                          {"status", "--join", reef.address_of(target), "--keys", guest});
      answered += status.wait() == 0 && status.out().find("p-0") != std::string::npos;
    }
  }
  note_memory(late);
  MESSAGE(links << " attempts to link, " << up << " links that were up, " << refusals.load()
                << " refusals, " << answered << " of " << asked << " questions answered");
  CHECK(up >= 1);
  CHECK(asked >= 1);
  CHECK(answered == asked);
  for (const auto& name : honest) {
    CAPTURE(name);
    REQUIRE_MESSAGE(reef.node(name).running(), reef.node(name).err());
    if (name != "shard-0")
      CHECK_MESSAGE(wait_until([&] { return epoch(name) >= epochs[name] + 5; }),
                    reef.node(name).err());
    const auto grown = static_cast<double>(reef.node(name).peak_memory_bytes()) - memory[name];
    MESSAGE(name << ": " << grown / (1 << 20) << " MiB more than before");
    if (memory_is_its_own) CHECK(grown < 100 * (1 << 20));
    MESSAGE(name << ": " << early[name] / (1 << 20) << " MiB after a tenth of the time, "
                 << late[name] / (1 << 20) << " MiB at the end, epoch " << epochs[name] << " to "
                 << (name == "shard-0" ? 0 : epoch(name)));
    // Without an attack, too, a peer keeps about 4 KiB of each step. The rest is flat: a growth
    // that ten days would not notice.
    const auto of_training = 6.0 * 1024 * (epoch(name) - early_epochs[name]);
    if (memory_is_its_own) CHECK(late[name] - early[name] < 16 * (1 << 20) + of_training);
    CHECK(reef.metrics(name)["shoal_links_open"] >= 3);
  }
  for (const auto& name : honest) reef.node(name).signal(SIGTERM);
  for (const auto& name : honest) CHECK(reef.node(name).wait() == 130);
}
