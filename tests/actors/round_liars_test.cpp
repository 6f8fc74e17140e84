// Enumerates the lies of one hostile member in a small round. In groups of 4 and 5, each member in
// turn is hostile. Each message that it sends is lost, late, sent twice, different for each
// receiver, or changed in one field and signed anew. This holds from the search for a group on. All
// honest members end, with one result or with a reason, and no honest member is named.
#include "actors/message_fields.hpp"
#include "tests/actors/support/liar.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

namespace {

lab_options group_of(std::uint32_t size) {
  // Never destroyed: an actor system must not outlive CAF's own statics.
  static const auto& site = *new auto(std::make_shared<lab_site>(5));
  lab_options out;
  out.site = site;
  out.values_per_part = 3;
  for (std::uint32_t m = 0; m < size; ++m) out.members.push_back({m + 1});
  return out;
}

/// The messages that the hostile member sends to `to` in place of its own.
using lie = std::function<std::vector<caf::message>(const round_lab&, std::uint32_t self,
                                                    std::uint32_t to, const caf::message&)>;

template <class T>
lie changed(
    std::function<void(T&, const round_lab&, std::uint32_t self, std::uint32_t to)> change) {
  return [change](const round_lab& lab, std::uint32_t self, std::uint32_t to,
                  const caf::message& m) -> std::vector<caf::message> {
    auto other = m.get_as<T>(0);
    change(other, lab, self, to);
    return {caf::make_message(std::move(other))};
  };
}

payload filled(std::uint64_t bytes, float with) {
  return payload{std::vector<float>(bytes / 4, with)};
}

constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

void sign_vote(member_ready& m, const round_lab& lab, std::uint32_t self) {
  m.by = lab.host(self).sign(vote_statement(m.group, m.version));
}

/// Each field of a message changed, with a fitting signature and with the old one. By day each
/// field changes in one way.
std::vector<std::pair<std::string, lie>> changed_fields(const caf::message& what) {
  std::vector<std::pair<std::string, lie>> out;
  const std::uint8_t ways = static_cast<std::uint8_t>(tries(1, ways_to_change));
  const auto fields = field_count(what);
  for (std::size_t field = 0; field < fields; ++field)
    for (std::uint8_t way = 0; way < ways; ++way)
      for (const bool is_signed : {true, false}) {
        const auto how = static_cast<std::uint8_t>((way + 5 * field) % ways_to_change);
        out.emplace_back(fmt::format("field {} changed in way {}, {}", field, how,
                                     is_signed ? "signed" : "forged"),
                         [=](const round_lab& lab, std::uint32_t self, std::uint32_t,
                             const caf::message& m) -> std::vector<caf::message> {
                           if (field >= field_count(m)) return {m};
                           auto other = with_changed_field(lab, m, field, how);
                           return {is_signed ? signed_again(lab, self, other) : other};
                         });
      }
  return out;
}

bool is_of_matchmaking(const caf::message& m) {
  return m.match_elements<join_request>() || m.match_elements<join_accepted>() ||
         m.match_elements<join_rejected>() || m.match_elements<join_withdrawn>() ||
         m.match_elements<group_begun>() || m.match_elements<member_declined>();
}

/// The lies about each type of message.
std::vector<std::pair<std::string, lie>> lies_about(const caf::message& what) {
  std::vector<std::pair<std::string, lie>> out;
  out.emplace_back("lost", [](auto&, auto, auto, auto&) { return std::vector<caf::message>{}; });
  out.emplace_back("twice", [](auto&, auto, auto, const caf::message& m) {
    return std::vector<caf::message>{m, m};
  });
  using lab_ref = const round_lab&;
  const auto add = [&]<class T>(const char* name, const T*, auto change) {
    if (what.match_elements<T>())
      out.emplace_back(name, changed<T>([change](T& m, lab_ref lab, std::uint32_t self,
                                                 std::uint32_t to) { change(m, lab, self, to); }));
  };
  const auto every_group = [&]<class T>(const T* type) {
    add("another group", type, [](auto& m, lab_ref, auto, auto) { ++m.group.low; });
  };
  if (is_of_matchmaking(what))
    for (auto& one : changed_fields(what)) out.push_back(std::move(one));
  constexpr const part_chunk* chunk = nullptr;
  every_group(chunk);
  add("sender", chunk,
      [](auto& m, lab_ref lab, auto, auto) { m.sender = (m.sender + 1) % lab.size(); });
  add("part", chunk, [](auto& m, lab_ref lab, auto, auto) { m.part = (m.part + 1) % lab.size(); });
  add("no part", chunk, [](auto& m, lab_ref, auto, auto) { m.part = 1'000'000; });
  add("offset", chunk, [](auto& m, lab_ref, auto, auto) { m.offset += 8; });
  add("odd offset", chunk, [](auto& m, lab_ref, auto, auto) { m.offset += 3; });
  add("values", chunk, [](auto& m, lab_ref, auto, auto) { m.data = filled(m.data.size(), 1e6f); });
  add("other values for each", chunk, [](auto& m, lab_ref, auto, std::uint32_t to) {
    m.data = filled(m.data.size(), static_cast<float>(to));
  });
  add("huge", chunk, [](auto& m, lab_ref, auto, auto) { m.data = filled(m.data.size(), 1e38f); });
  add("NaN", chunk,
      [](auto& m, lab_ref, auto, auto) { m.data = filled(m.data.size(), no_number); });
  add("short", chunk, [](auto& m, lab_ref, auto, auto) { m.data = filled(4, 1); });
  add("long", chunk, [](auto& m, lab_ref, auto, auto) { m.data = filled(400, 1); });
  add("no bytes", chunk,
      [](auto& m, lab_ref, auto, auto) { m.data = payload::size_only(m.data.size()); });

  constexpr const reduced_chunk* reduced = nullptr;
  every_group(reduced);
  add("part", reduced,
      [](auto& m, lab_ref lab, auto, auto) { m.part = (m.part + 1) % lab.size(); });
  add("offset", reduced, [](auto& m, lab_ref, auto, auto) { m.offset += 8; });
  add("weight", reduced, [](auto& m, lab_ref, auto, auto) { ++m.weight; });
  add("no senders", reduced, [](auto& m, lab_ref, auto, auto) { m.senders.clear(); });
  add("senders that are none", reduced,
      [](auto& m, lab_ref, auto, auto) { m.senders.push_back(77); });
  const auto reweigh = [](auto& m, lab_ref lab) {
    m.weight = 0;
    for (auto s : m.senders) m.weight += lab.group().members[s].weight;
  };
  add("without the receiver", reduced, [reweigh](auto& m, lab_ref lab, auto, std::uint32_t to) {
    std::erase(m.senders, to);
    reweigh(m, lab);
  });
  add("without the first other", reduced,
      [reweigh](auto& m, lab_ref lab, std::uint32_t self, auto) {
        std::erase(m.senders, self == 0 ? 1u : 0u);
        reweigh(m, lab);
      });
  add("only itself", reduced, [reweigh](auto& m, lab_ref lab, std::uint32_t self, auto) {
    m.senders = {self};
    reweigh(m, lab);
    m.data = filled(m.data.size(), -777);
  });
  add("values", reduced,
      [](auto& m, lab_ref, auto, auto) { m.data = filled(m.data.size(), 12345); });
  add("other values for each", reduced, [](auto& m, lab_ref, auto, std::uint32_t to) {
    m.data = filled(m.data.size(), static_cast<float>(to));
  });
  add("other values for one", reduced, [](auto& m, lab_ref, std::uint32_t self, std::uint32_t to) {
    if (to == (self + 1) % 4) m.data = filled(m.data.size(), 5);
  });
  add("NaN", reduced,
      [](auto& m, lab_ref, auto, auto) { m.data = filled(m.data.size(), no_number); });
  add("short", reduced, [](auto& m, lab_ref, auto, auto) { m.data = filled(4, 1); });

  constexpr const chunk_received* received = nullptr;
  every_group(received);
  add("member", received,
      [](auto& m, lab_ref lab, auto, auto) { m.member = (m.member + 1) % lab.size(); });
  add("part", received,
      [](auto& m, lab_ref lab, auto, auto) { m.part = (m.part + 1) % lab.size(); });
  add("kind", received, [](auto& m, lab_ref, auto, auto) { m.reduced ^= 1; });
  add("late", received, [](auto& m, lab_ref, auto, auto) { m.reduced = 2; });

  constexpr const member_ready* vote = nullptr;
  every_group(vote);
  add("member", vote,
      [](auto& m, lab_ref lab, auto, auto) { m.member = (m.member + 1) % lab.size(); });
  add("version", vote, [](auto& m, lab_ref, auto, auto) { ++m.version.low; });
  add("signature", vote, [](auto& m, lab_ref, auto, auto) { ++m.by.r.a; });
  add("signed version", vote, [](auto& m, lab_ref lab, std::uint32_t self, auto) {
    ++m.version.low;
    sign_vote(m, lab, self);
  });
  add("signed versions for each", vote,
      [](auto& m, lab_ref lab, std::uint32_t self, std::uint32_t to) {
        m.version.low += to % 2;
        sign_vote(m, lab, self);
      });
  if (what.match_elements<member_ready>()) {
    out.emplace_back("two votes",
                     [](lab_ref lab, std::uint32_t self, std::uint32_t,
                        const caf::message& m) -> std::vector<caf::message> {
                       auto other = m.get_as<member_ready>(0);
                       ++other.version.high;
                       sign_vote(other, lab, self);
                       return {m, caf::make_message(other)};
                     });
    out.emplace_back("a vote or a decline",
                     [](lab_ref lab, std::uint32_t self, std::uint32_t to,
                        const caf::message& m) -> std::vector<caf::message> {
                       const auto group = lab.group().group;
                       if (to % 2 == 0) return {m};
                       return {caf::make_message(member_declined{
                           group, self, lab.host(self).sign(decline_statement(group))})};
                     });
    out.emplace_back("a vote and false word of the end",
                     [](lab_ref lab, std::uint32_t self, std::uint32_t,
                        const caf::message& m) -> std::vector<caf::message> {
                       const auto group = lab.group().group;
                       return {caf::make_message(member_finished{group, self, 0, {9, 9}}), m,
                               caf::make_message(certificate_given{group, self, {9, 9}, {}, {}}),
                               caf::make_message(certificate_wanted{group, self})};
                     });
  }

  constexpr const member_finished* end = nullptr;
  every_group(end);
  add("member", end,
      [](auto& m, lab_ref lab, auto, auto) { m.member = (m.member + 1) % lab.size(); });
  add("failed", end, [](auto& m, lab_ref, auto, auto) { m.failed ^= 1; });
  add("version", end, [](auto& m, lab_ref, auto, auto) { ++m.version.low; });

  const auto of_recovery = [&]<class T>(const T* type) {
    every_group(type);
    add("member", type,
        [](auto& m, lab_ref lab, auto, auto) { m.member = (m.member + 1) % lab.size(); });
    add("part", type, [](auto& m, lab_ref lab, auto, auto) { m.part = (m.part + 1) % lab.size(); });
    add("no part", type, [](auto& m, lab_ref, auto, auto) { m.part = 1'000'000; });
  };
  of_recovery(static_cast<const part_query*>(nullptr));
  of_recovery(static_cast<const part_claim*>(nullptr));
  of_recovery(static_cast<const part_answer*>(nullptr));
  of_recovery(static_cast<const part_wanted*>(nullptr));
  add("held", static_cast<const part_query*>(nullptr), [](auto& m, lab_ref, auto, auto) {
    m.held = {{0, 1}};
  });
  add("impossible held", static_cast<const part_query*>(nullptr), [](auto& m, lab_ref, auto, auto) {
    m.held = {{0, 4'000'000'000}};
  });
  add("kind", static_cast<const part_wanted*>(nullptr),
      [](auto& m, lab_ref, auto, auto) { m.reduced ^= 1; });
  add("impossible chunks", static_cast<const part_wanted*>(nullptr),
      [](auto& m, lab_ref, auto, auto) {
        m.chunks = {{4'000'000'000, 7}};
      });
  return out;
}

std::string_view type_of(const caf::message& m) {
  return name_of(m);
}

struct tally {
  std::uint64_t runs = 0;
  std::map<std::string, std::uint64_t> outcomes;
};

/// Which messages of the hostile member are lies.
struct plan {
  std::uint32_t size = 4, hostile = 0;
  std::optional<std::uint32_t> killed{};
  std::size_t lie = 0;    // number of the lie about the message
  std::uint64_t from = 0; // the hostile member's messages from this one on
  bool all = false;       // all of the first lie's type, else one
  bool gathers = false;   // the members find their group first
  std::uint64_t late = 0; // deliveries by which the messages are late
};

/// False if the hostile member sends fewer messages, or there are fewer lies about the message.
bool run(const plan& p, tally& into) {
  auto options = group_of(p.size);
  options.matchmaking = p.gathers;
  round_lab lab(options);
  std::uint64_t sent = 0;
  bool lied = false;
  std::string_view type;
  std::string name;
  std::vector<std::pair<std::uint32_t, caf::message>> late;
  lab.filter = [&](std::uint32_t from, std::uint32_t to, const caf::message& m) {
    if (from != p.hostile) return true;
    const auto at = sent++;
    if (at == p.from)
      type = type_of(m);
    else if (at < p.from || !p.all || !lied || type_of(m) != type)
      return true;
    const auto lies = lies_about(m);
    if (p.lie >= lies.size()) return true;
    lied = true;
    name = lies[p.lie].first;
    for (auto& one : lies[p.lie].second(lab, from, to, m)) {
      if (p.late > 0)
        late.emplace_back(to, std::move(one));
      else
        lab.inject(from, to, std::move(one));
    }
    return false;
  };
  lab.start();
  if (p.killed) lab.kill(*p.killed, false);
  if (p.late > 0) {
    for (std::uint64_t i = 0; i < p.late; ++i) lab.step();
    for (auto& [to, m] : std::exchange(late, {})) lab.inject(p.hostile, to, std::move(m));
    if (p.late > 100) lab.pass(lab.sender_timeout());
  }
  (void)lab.run();
  if (!lied) return false;
  const auto what = fmt::format("{} of {}, {}{}: {} from message {}", p.hostile, p.size,
                                p.all ? "all " : "", p.killed ? "with a loss" : "", name, p.from);
  for (const auto& harm : harm_done(lab, p.hostile))
    FAIL_CHECK(what << ": " << harm << " (" << lab.outcomes() << ")");
  ++into.runs;
  ++into.outcomes[lab.outcomes().find('f') == std::string::npos ? "completed" : "with failures"];
  return true;
}

void report(const std::string& what, const tally& t) {
  std::string text;
  for (const auto& [name, count] : t.outcomes) text += fmt::format(", {} {}", count, name);
  MESSAGE(what << ": " << t.runs << " rounds" << text);
}

} // namespace

TEST_CASE("a hostile member's single lie at any message splits no round and accuses nobody") {
  tally t;
  for (const std::uint32_t size : {4u, 5u})
    for (std::uint32_t who = 0; who < size; ++who)
      for (std::uint64_t from = 0; from < 80; from += size == 4 ? 1 : tries(3, 1)) {
        plan p{.size = size, .hostile = who, .from = from};
        for (p.lie = 0; run(p, t); ++p.lie) {
        }
      }
  report("single lies", t);
  CHECK(t.runs > 2'000);
  CHECK(t.outcomes["completed"] > 0);
}

TEST_CASE("a hostile member that lies in all messages of a type splits no round and accuses "
          "nobody") {
  tally t;
  for (const std::uint32_t size : {4u, 5u})
    for (std::uint32_t who = 0; who < size; ++who)
      for (const bool loss : {false, true})
        for (std::uint64_t from = 0; from < 80; from += loss ? 2 : 5) {
          plan p{.size = size, .hostile = who, .from = from, .all = true};
          if (loss) p.killed = static_cast<std::uint32_t>((who + 1 + from / 2) % size);
          if (p.killed == who) p.killed = (who + 1) % size;
          for (p.lie = 0; run(p, t); ++p.lie) {
          }
        }
  report("all messages of a type", t);
  CHECK(t.runs > 2'000);
}

TEST_CASE("a hostile member's late lies split no round and accuse nobody") {
  tally t;
  for (const std::uint32_t size : {4u, 5u})
    for (std::uint32_t who = 0; who < size; ++who)
      for (const std::uint64_t late : {5u, 40u, 1000u})
        for (std::uint64_t from = 0; from < 80; from += 4) {
          plan p{.size = size, .hostile = who, .from = from, .all = true, .late = late};
          for (p.lie = 0; run(p, t); ++p.lie) {
          }
        }
  report("late lies", t);
  CHECK(t.runs > 2'000);
}

TEST_CASE("a hostile member's lie while groups form splits no round and accuses nobody") {
  tally t;
  for (const std::uint32_t size : {4u, 5u})
    for (std::uint32_t who = 0; who < size; ++who)
      // In groups of five, every third message by day.
      for (std::uint64_t from = 0; from < 16; from += size == 4 ? 1 : tries(3, 1)) {
        plan p{.size = size, .hostile = who, .from = from, .gathers = true};
        for (p.lie = 0; run(p, t); ++p.lie) {
        }
      }
  report("lies while groups form", t);
  CHECK(t.runs > 1'000);
  CHECK(t.outcomes["completed"] > 0);
}

TEST_CASE("a hostile member's lies after it found a group splits no round and accuses nobody") {
  SHOAL_NIGHTLY();
  tally t;
  for (const std::uint32_t size : {4u, 5u})
    for (std::uint32_t who = 0; who < size; ++who)
      for (std::uint64_t from = 0; from < 100; ++from)
        for (const bool all : {false, true}) {
          plan p{.size = size, .hostile = who, .from = from, .all = all, .gathers = true};
          for (p.lie = 0; run(p, t); ++p.lie) {
          }
        }
  report("lies with matchmaking", t);
  CHECK(t.runs > 10'000);
}
