// The cost of proof in one averaging round: bytes and time of the signed roster, the signed votes
// and the certificate, with real Ed25519. A bare check of one signature takes turns with each
// measurement, so that a loaded machine slows both.
// usage: trust_bench MEMBERS ...
#include "actors/averaging/certificate.hpp"
#include "actors/averaging/messages.hpp"
#include "actors/trust/identity.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/detail/serialized_size.hpp>
#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using wall_clock = std::chrono::steady_clock;

constexpr int repeats = 7;

struct keys {
  key256 open{};
  unsigned char secret[crypto_sign_SECRETKEYBYTES];
  keys() { crypto_sign_keypair(reinterpret_cast<unsigned char*>(&open), secret); }
  signature sign(const digest& statement) const {
    signature out;
    crypto_sign_detached(reinterpret_cast<unsigned char*>(&out), nullptr, statement.bytes.data(),
                         statement.bytes.size(), secret);
    return out;
  }
};

template <class F>
double seconds(F what) {
  const auto begun = wall_clock::now();
  what();
  return std::chrono::duration<double>(wall_clock::now() - begun).count();
}

struct spread {
  std::vector<double> all;
  double median() {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }
  std::string text(double unit, const char* name) {
    const auto middle = median();
    return fmt::format("{:.2f} {} ({:.2f}..{:.2f})", middle * unit, name, all.front() * unit,
                       all.back() * unit);
  }
};

/// The bytes of a message, as CAF's serializer writes them.
template <class Message>
std::size_t bytes_of(mini_world& in, const Message& what) {
  return caf::detail::serialized_size(in.system(), what);
}

[[noreturn]] void fail(std::string_view why) {
  fmt::print(stderr, "trust_bench: {}\n", why);
  std::exit(3);
}

void measure(std::size_t members) {
  mini_world in;
  std::vector<keys> all(members);
  round_certificate made;
  auto& roster = made.roster;
  roster.epoch = 7;
  roster.value_count = 1'000'000;
  made.version = {1, 2};
  for (std::size_t m = 0; m < members; ++m) {
    auto& host = in.add_host(fmt::format("m{}", m));
    member_info who;
    who.peer = host.id();
    who.address =
        in.spawn<collector<join_request>>(host, std::make_shared<collector<join_request>::log>());
    who.weight = 64;
    who.samples = {{64 * m, 64}};
    who.key = all[m].open;
    roster.members.push_back(std::move(who));
  }
  std::uint64_t checks = 0;
  const signature_check checker = [&](const key256& key, const digest& of, const signature& by) {
    ++checks;
    return is_signed_by(key, of, by);
  };
  spread entry, close, roster_time, vote_time, votes_time, certificate_time, bare, ratio;
  for (int r = 0; r < repeats; ++r) {
    entry.all.push_back(seconds(
        [&] { roster.members[0].by = all[0].sign(member_statement(roster, roster.members[0])); }));
    for (std::size_t m = 1; m < members; ++m)
      roster.members[m].by = all[m].sign(member_statement(roster, roster.members[m]));
    close.all.push_back(seconds([&] {
      roster.group = group_of(roster);
      roster.by = all[0].sign(group_statement(roster));
    }));
    made.votes.clear();
    const auto vote = vote_statement(made.round(), made.version);
    signature first;
    vote_time.all.push_back(seconds([&] { first = all[0].sign(vote); }));
    for (std::size_t m = 0; m < members; ++m)
      made.votes.push_back({static_cast<std::uint32_t>(m), all[m].sign(vote)});
    if (first != made.votes[0].by) fail("two signatures of one statement differ");
    bool good = true;
    const auto one_bare = seconds([&] {
      for (std::size_t m = 0; m < members; ++m)
        good = is_signed_by(all[m].open, vote, made.votes[m].by) && good;
    });
    bare.all.push_back(one_bare / static_cast<double>(members));
    roster_time.all.push_back(seconds([&] { good = check_roster(roster, checker).ok() && good; }));
    votes_time.all.push_back(seconds([&] {
      for (std::size_t m = 1; m < members; ++m)
        good = is_signed_by(all[m].open, vote_statement(made.round(), made.version),
                            made.votes[m].by) &&
               good;
    }));
    checks = 0;
    certificate_time.all.push_back(seconds([&] { good = check(made, checker).ok() && good; }));
    ratio.all.push_back(certificate_time.all.back() /
                        (static_cast<double>(checks) * bare.all.back()));
    if (!good) fail("a true signature is refused");
  }
  auto forged = made;
  forged.version = {3, 4};
  if (check(forged, checker).ok()) fail("a false certificate is accepted");

  join_request join;
  join.member = roster.members[0];
  member_ready ready;
  ready.by = made.votes[0].by;
  const auto begun = bytes_of(in, roster), asks = bytes_of(in, join), votes = bytes_of(in, ready);
  certificate_given given;
  given.votes = made.votes;
  fmt::print("| {} | {} | {} | {:.1f} | {} | {} | {} | {} | {} | {} |\n", members, begun,
             votes * (members - 1),
             static_cast<double>((members - 1) * begun + members * (members - 1) * votes +
                                 (members - 1) * asks) /
                 static_cast<double>(members) / 1024,
             begun + bytes_of(in, given), roster_time.text(1e3, "ms"), votes_time.text(1e3, "ms"),
             certificate_time.text(1e3, "ms"),
             fmt::format("{:.0f} + {:.0f} + {:.0f} us", entry.median() * 1e6, close.median() * 1e6,
                         vote_time.median() * 1e6),
             ratio.text(1, "x"));
  fmt::print(stderr, "{} members: one signature is checked in {}\n", members, bare.text(1e6, "us"));
}

} // namespace

int main(int count, char** arguments) {
  if (count < 2 || sodium_init() < 0) fail("usage: trust_bench MEMBERS ...");
  fmt::print("| members | roster, bytes | votes to one member, bytes | sent by a member, KiB | "
             "certificate, bytes | check the roster | check the votes | check a certificate | "
             "sign entry, roster, vote | certificate / bare signatures |\n"
             "|---|---|---|---|---|---|---|---|---|---|\n");
  for (int i = 1; i < count; ++i) {
    const auto members = std::strtoul(arguments[i], nullptr, 10);
    if (members < 1 || members > 16'384) fail("a round has 1 to 16384 members");
    measure(members);
  }
}
