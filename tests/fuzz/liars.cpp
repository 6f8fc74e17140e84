// A hostile member in a small round, from the search for a group to the certificate. The input says
// how many members there are, which one is hostile, and how each of its messages is changed. The
// hostile member signs what it changes with its own key. It may send many changed messages before
// a true one, so that one swarm reads a lot of them. The others keep the promises of harm_done()
// (tests/actors/support/liar.hpp).
#include "tests/fuzz/liars.hpp"

#include "tests/actors/support/liar.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shoal::fuzz {

namespace {

using namespace actors;
using namespace actors::testing;

constexpr std::size_t most_members = 5;
constexpr std::size_t most_messages = 400;

/// The fate of one message: the low four bits of a byte.
enum deed : std::uint8_t {
  honest,    // up to 2
  flood = 3, // many changed ones, and then the true one
  lost = 4,
  twice,
  changed, // a field, and signed again
  forged,  // a field, with the old signature
  changed_twice,
  late,
  elsewhere,
  repeated, // an earlier message in its place
  both,     // the true one and a changed one
  strange,  // a stranger sends it
  to_all,
};

class liar {
public:
  liar(front& from, round_lab& lab, std::uint32_t self) : from_(from), lab_(lab), self_(self) {}

  bool sees(std::uint32_t to, const caf::message& m) {
    const auto what = from_.empty() || ++messages_ > most_messages ? honest : from_.byte() & 15;
    if (sent_.size() < 64) sent_.push_back(m);
    if (what >= flood) ++lies_;
    switch (what) {
    case flood:
      for (auto left = from_.byte() % 32U; left > 0 && !from_.empty(); --left, ++lies_) {
        const auto how = from_.byte();
        const auto other = change(how % 4 == 0 ? sent_[how / 4 % sent_.size()] : m);
        tell(how % 8 == 1 ? how / 8 % lab_.size() : to,
             how % 2 == 0 ? other : signed_again(lab_, self_, other));
      }
      return true;
    case lost:
      return false;
    case twice:
      tell(to, m);
      return true;
    case changed:
      tell(to, signed_again(lab_, self_, change(m)));
      return false;
    case forged:
      tell(to, change(m));
      return false;
    case changed_twice:
      tell(to, signed_again(lab_, self_, change(change(m))));
      return false;
    case late:
      late_.emplace_back(to, m);
      return false;
    case elsewhere:
      tell(from_.byte() % lab_.size(), m);
      return false;
    case repeated:
      tell(to, sent_[from_.byte() % sent_.size()]);
      return false;
    case both:
      tell(to, signed_again(lab_, self_, change(m)));
      return true;
    case strange:
      lab_.inject_by_stranger(to, m);
      return true;
    case to_all:
      for (std::uint32_t each = 0; each < lab_.size(); ++each) tell(each, m);
      return false;
    default:
      return true;
    }
  }
  std::uint64_t lies() const { return lies_; }
  void say_late() {
    for (auto& [to, m] : std::exchange(late_, {})) tell(to, m);
  }

private:
  void tell(std::uint32_t to, caf::message m) {
    if (to != self_) lab_.inject(self_, to, std::move(m));
  }
  caf::message change(const caf::message& m) {
    const auto fields = field_count(m);
    if (fields == 0) return m;
    const auto which = from_.byte();
    return with_changed_field(lab_, m, which % fields, from_.byte());
  }

  front& from_;
  round_lab& lab_;
  std::uint32_t self_;
  std::size_t messages_ = 0;
  std::uint64_t lies_ = 0;
  std::vector<caf::message> sent_;
  std::vector<std::pair<std::uint32_t, caf::message>> late_;
};

} // namespace

lying_swarm play_liars(bytes input) {
  // Never destroyed: an actor system must not outlive CAF's own statics.
  static const auto& site = *new auto(std::make_shared<lab_site>(most_members));
  front from(input);
  const auto shape = from.byte(), order = from.byte();
  lab_options options;
  options.site = site;
  options.values_per_part = 3;
  options.matchmaking = shape % 2 == 0;
  const auto count = 3U + shape / 2 % 3;
  for (std::uint32_t m = 0; m < count; ++m) options.members.push_back({m + 1});
  const kernels::codec codecs[] = {kernels::codec::none, kernels::codec::none,
                                   kernels::codec::blockwise8, kernels::codec::top_k};
  options.codec = codecs[shape / 64];
  if (order > 0) options.shuffle = order;
  const auto self = shape / 8 % count;
  round_lab lab(options);
  liar hostile(from, lab, self);
  lab.filter = [&](std::uint32_t sender, std::uint32_t to, const caf::message& m) {
    return sender != self || hostile.sees(to, m);
  };
  if (const auto bid = from.byte(); bid > 0)
    lab.bid_of = [self, bid](std::uint32_t of) {
      const auto deadline = of == self ? (bid % 16 - 4) * 500'000'000L : (of + 1) * 1'000'000'000L;
      return matchmaking::bid{deadline, of != self || bid < 128}.pack();
    };
  lab.start();
  for (int i = from.byte() % 64; i > 0 && lab.step(); --i) {
  }
  hostile.say_late();
  // The hostile member's messages from now on are late by at most the time of the round.
  lying_swarm out;
  if (!lab.run()) {
    out.harm.push_back("a round does not end");
    return out;
  }
  hostile.say_late();
  lab.settle();
  out.harm = harm_done(lab, self);
  out.lies = hostile.lies();
  for (std::uint32_t m = 0; m < lab.size(); ++m)
    if (m != self && lab.alive(m) && lab.result(m).succeeded()) ++out.results;
  return out;
}

void liars(bytes input) {
  const auto seen = play_liars(input);
  must(seen.harm.empty(), seen.harm.empty() ? "" : seen.harm.front().c_str());
}

} // namespace shoal::fuzz
