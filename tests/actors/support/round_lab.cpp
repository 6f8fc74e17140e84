#include "tests/actors/support/round_lab.hpp"

#include "actors/conduct/conducts.hpp"
#include "tests/actors/support/rosters.hpp"

#include <caf/actor_cast.hpp>
#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace shoal::actors::testing {

struct round_lab::io final : round_io {
  round_lab& lab;
  std::uint32_t self;
  io(round_lab& in, std::uint32_t member) : lab(in), self(member) {}
  void send_to(const caf::actor& to, caf::message content) override {
    lab.send(self, to, std::move(content));
  }
  void watch(const caf::actor&) override {}
  void probe(std::string_view point) override {
    ++lab.probes[std::string(point)];
    if (lab.on_probe) lab.on_probe(self, point);
  }
  duration time() const override { return lab.now_; }
  void suspect(peer_id culprit, std::string why) override {
    lab.suspicions.push_back(fmt::format("{} says of peer {}: {}", self, culprit, why));
  }
  void convict(peer_id culprit, const contradiction& proof) override {
    if (!proof.holds([&](const key256& key, const digest& what, const signature& by) {
          return is_signed_by(key, what, by);
        }))
      lab.suspicions.push_back("a proof that proves nothing");
    suspect(culprit, "two signed statements that contradict each other");
  }
  std::int64_t utc_ns() const override { return lab.now_.count(); }
  peer_id peer_of(const caf::strong_actor_ptr& address) const override {
    for (std::uint32_t m = 0; m < lab.size(); ++m)
      if (caf::actor_cast<caf::strong_actor_ptr>(lab.members_[m].address) == address)
        return lab.group_.members[m].peer;
    return 0;
  }
  member_id member_of(const caf::strong_actor_ptr& address) const override {
    return host().member_of(address);
  }
  bool is_banned(const member_id& who) const override { return host().is_banned(who); }
  signature sign(const digest& statement) const override { return host().sign(statement); }
  bool is_signed_by(const key256& key, const digest& statement,
                    const signature& by) const override {
    return host().is_signed_by(key, statement, by);
  }
  const mini_host& host() const { return *lab.members_[self].host; }
};

namespace {

/// A round that needs more messages never ends.
int most_deliveries(std::size_t members) {
  return std::max(2'000, static_cast<int>(100 * members * members));
}

/// In UTC ns: member m would close a group of its own after m + 1 seconds.
std::int64_t own_deadline(std::uint32_t m) {
  return std::int64_t{m + 1} * 1'000'000'000;
}

} // namespace

lab_site::lab_site(std::size_t members) {
  using dummy = collector<chunk_received>;
  auto spawn = [&](mini_host& on) {
    return world.spawn<dummy>(on, std::make_shared<dummy::log>());
  };
  stranger_host = &world.add_host("stranger");
  stranger = spawn(*stranger_host);
  for (std::size_t m = 0; m < members; ++m) {
    hosts.push_back(&world.add_host(fmt::format("m-{}", m)));
    addresses.push_back(spawn(*hosts.back()));
  }
}

round_lab::round_lab(lab_options options)
    : options_(std::move(options)), site_(options_.site),
      random_(stream(options_.shuffle.value_or(0), "lab")) {
  if (!site_) site_ = std::make_shared<lab_site>(options_.members.size());
  config_.chunk_bytes = options_.chunk_bytes;
  config_.aggregator = aggregators().find(options_.aggregator);
  config_.aggregation = options_.aggregation;
  config_.window_chunks = options_.window_chunks;
  config_.conduct = make_conduct(options_.conduct, *site_->stranger_host);
  const auto size = static_cast<std::uint32_t>(options_.members.size());
  members_.resize(size);
  for (std::uint32_t m = 0; m < size; ++m) {
    members_[m].host = site_->hosts.at(m);
    members_[m].address = site_->addresses[m];
  }
  make_group();
  auto values_of = stream(0, "lab.values");
  for (std::uint32_t m = 0; m < size; ++m) {
    auto& one = members_[m];
    std::vector<float> values(group_.boundaries.back());
    for (auto& x : values) x = static_cast<float>(values_of.below(2000)) / 7 - 100;
    if (options_.change) options_.change(m, values);
    one.request.epoch = group_.epoch;
    one.request.values = payload{std::move(values)};
    one.request.weight = group_.members[m].weight;
    one.request.takes = options_.members[m].takes;
    if (options_.codec != kernels::codec::none)
      one.request.codecs.contributions = std::make_shared<kernels::vector_codec>(
          options_.codec, std::span<const std::uint64_t>{}, options_.top_k_fraction);
    if (options_.codec != kernels::codec::top_k)
      one.request.codecs.means = one.request.codecs.contributions;
    one.world = std::make_unique<io>(*this, m);
    if (!options_.matchmaking) begin_round(m, group_);
  }
  if (options_.matchmaking) make_matchers();
}

/// The group of all members, whose parts have different sizes.
void round_lab::make_group() {
  group_.epoch = 3;
  group_.chunk_bytes = options_.chunk_bytes;
  group_.boundaries = {0};
  for (std::uint32_t m = 0; m < size(); ++m) {
    const auto& what = options_.members[m];
    group_.members.push_back({100 + m,
                              members_[m].address,
                              what.weight,
                              what.rate_up,
                              what.rate_down,
                              static_cast<std::uint8_t>(what.reachable ? 2 : 0),
                              static_cast<std::uint8_t>(what.takes ? 1 : 0),
                              {}});
    auto part = !what.reachable ? 0 : options_.values_per_part + m;
    group_.boundaries.push_back(group_.boundaries.back() + part);
  }
  group_.value_count = group_.boundaries.back();
  group_ = sealed(std::move(group_), {site_->hosts.begin(), site_->hosts.begin() + size()});
}

void round_lab::begin_round(std::uint32_t m, group_begun group) {
  auto& one = members_[m];
  one.group = group;
  one.began = now_;
  one.round =
      std::make_unique<butterfly>(config_, one.request, std::move(group), 100 + m, *one.world,
                                  [this, m](round_result result) { end(m, std::move(result)); });
}

void round_lab::end(std::uint32_t m, round_result result) {
  auto& one = members_[m];
  if (one.matcher)
    one.matcher->set_late_answer(result.succeeded() ? reason::group_closed : reason::cancelled);
  one.result = std::move(result);
}

// -- matchmaking ----------------------------------------------------------------------------------

void round_lab::make_matchers() {
  std::uint64_t samples = 0;
  for (const auto& one : options_.members) samples += one.weight;
  for (std::uint32_t m = 0; m < size(); ++m) {
    auto& one = members_[m];
    one.request.known_samples = samples;
    for (std::uint32_t other = 0; other < size(); ++other)
      if (other != m) one.request.expected.push_back({100 + other, members_[other].address});
    auto of = group_;
    of.codec = one.request.codecs.number();
    auto self = group_.members[m];
    sign_entry(of, self, *one.host);
    matchmaking::events events;
    events.begun = [this, m](const group_begun& group) {
      begin_round(m, group);
      members_[m].round->start();
      for (auto& [from, content] : std::exchange(members_[m].early, {}))
        hand_over(m, from, content);
    };
    events.failed = [this, m](reason why) {
      round_result result;
      result.reason = why;
      end(m, std::move(result));
      // The group actor of such a member ends at once.
      members_[m].left = true;
      for (std::uint32_t to = 0; to < size(); ++to)
        if (to != m && !cut_.contains({m, to})) under_way_[{m, to}].push_back({order_++, {}});
    };
    one.matcher = std::make_unique<matchmaking>(config_, one.request, self, own_deadline(m),
                                                *one.world, std::move(events));
  }
}

/// The members read each other's records.
void round_lab::find_peers() {
  for (std::uint32_t m = 0; m < size(); ++m) {
    if (!members_[m].matcher || members_[m].matcher->over() || !members_[m].alive) continue;
    std::vector<shared<record>> records;
    for (std::uint32_t other = 0; other < size(); ++other) {
      if (!members_[other].alive || members_[other].left) continue;
      record entry;
      entry.subkey = fmt::format("{:016x}", 100 + other);
      entry.address = members_[other].address;
      entry.value =
          bid_of ? bid_of(other)
                 : matchmaking::bid{own_deadline(other), options_.members[other].reachable}.pack();
      records.emplace_back(std::move(entry));
    }
    members_[m].matcher->found_peers(records);
  }
}

void round_lab::check_deadlines() {
  for (std::uint32_t m = 0; m < size(); ++m) {
    auto& one = members_[m];
    if (!one.matcher || one.matcher->over() || !one.alive) continue;
    const auto deadline = std::chrono::seconds(m + 1);
    if (now_ >= deadline && !std::exchange(one.passed_deadline, true))
      one.matcher->on_deadline(true);
    if (now_ >= 3 * config_.matchmaking_time) one.matcher->on_give_up();
  }
  find_peers();
}

round_lab::~round_lab() = default;

void round_lab::start() {
  for (auto& one : members_)
    if (one.alive && one.matcher)
      one.matcher->start();
    else if (one.alive)
      one.round->start();
  find_peers();
}

void round_lab::send(std::uint32_t from, const caf::actor& to, caf::message content) {
  // The member was killed in the middle of a handler.
  if (!members_[from].alive) return;
  std::uint32_t m = 0;
  while (m < size() && members_[m].address != to) ++m;
  if (m == size()) return; // a hostile member named an address outside of the group
  if (filter && !filter(from, m, content)) return;
  if (content.match_elements<part_chunk>()) bytes += content.get_as<part_chunk>(0).data.size();
  if (content.match_elements<reduced_chunk>())
    bytes += content.get_as<reduced_chunk>(0).data.size();
  inject(from, m, std::move(content));
}

void round_lab::inject(std::uint32_t from, std::uint32_t to, caf::message content) {
  if (!cut_.contains({from, to})) under_way_[{from, to}].push_back({order_++, std::move(content)});
}

void round_lab::inject_by_stranger(std::uint32_t to, caf::message content) {
  hand_over(to, caf::actor_cast<caf::strong_actor_ptr>(site_->stranger), content);
}

bool round_lab::step() {
  std::vector<pair> ready;
  auto oldest = order_;
  for (const auto& [which, queue] : under_way_) {
    if (queue.empty() || held_.contains(which)) continue;
    if (options_.shuffle) {
      ready.push_back(which);
    } else if (queue.front().order < oldest) {
      oldest = queue.front().order;
      ready.assign(1, which);
    }
  }
  if (ready.empty()) return false;
  auto which = ready[ready.size() == 1 ? 0 : random_.below(ready.size())];
  auto& queue = under_way_.at(which);
  auto what = std::move(queue.front());
  queue.pop_front();
  deliver(which, std::move(what));
  return true;
}

void round_lab::deliver(pair which, envelope what) {
  auto [from, to] = which;
  if (!members_[to].alive || members_[to].left) return;
  ++delivered;
  if (what.content)
    hand_over(to, caf::actor_cast<caf::strong_actor_ptr>(members_[from].address), *what.content);
  else
    on_down(to, caf::actor_cast<caf::actor_addr>(members_[from].address));
}

void round_lab::on_down(std::uint32_t to, const caf::actor_addr& whom) {
  if (members_[to].matcher) members_[to].matcher->on_down(whom);
  if (members_[to].round) members_[to].round->on_down(whom);
}

void round_lab::hand_over(std::uint32_t to, const caf::strong_actor_ptr& from,
                          const caf::message& content) {
  if (members_[to].matcher) {
    auto& matcher = *members_[to].matcher;
    const auto match = [&]<class T>(const T*) {
      if (!content.match_elements<T>()) return false;
      matcher.on(content.get_as<T>(0), from);
      return true;
    };
    if (match(static_cast<join_request*>(nullptr)) || match(static_cast<join_accepted*>(nullptr)) ||
        match(static_cast<join_rejected*>(nullptr)) ||
        match(static_cast<join_withdrawn*>(nullptr)) || match(static_cast<group_begun*>(nullptr)))
      return;
    if (!members_[to].round) {
      if (members_[to].early.size() < 1000) members_[to].early.emplace_back(from, content);
      return;
    }
  }
  auto& round = *members_[to].round;
  auto as = [&]<class T>(const T*) {
    if (!content.match_elements<T>()) return false;
    // A group actor drops messages of other groups.
    if (members_[to].matcher && content.get_as<T>(0).group != members_[to].group.group) return true;
    round.on(content.get_as<T>(0), from);
    return true;
  };
  (void)(as(static_cast<part_chunk*>(nullptr)) || as(static_cast<reduced_chunk*>(nullptr)) ||
         as(static_cast<chunk_received*>(nullptr)) || as(static_cast<part_query*>(nullptr)) ||
         as(static_cast<part_claim*>(nullptr)) || as(static_cast<part_answer*>(nullptr)) ||
         as(static_cast<part_wanted*>(nullptr)) || as(static_cast<member_ready*>(nullptr)) ||
         as(static_cast<member_finished*>(nullptr)) ||
         as(static_cast<certificate_wanted*>(nullptr)) ||
         as(static_cast<certificate_given*>(nullptr)) || as(static_cast<part_versions*>(nullptr)) ||
         as(static_cast<member_declined*>(nullptr)));
}

void round_lab::settle() {
  // A hostile member may answer each answer. On a network, that takes time.
  for (int left = most_deliveries(size()); left > 0 && step(); --left) {
  }
}

void round_lab::pass(duration time) {
  now_ += time;
  for (auto& one : members_)
    if (one.alive && one.round) one.round->check_senders();
  check_deadlines();
}

bool round_lab::run() {
  auto all_ended = [&] {
    for (const auto& one : members_)
      if (one.alive && !one.result) return false;
    return true;
  };
  while (true) {
    settle();
    if (all_ended()) {
      notice();
      settle();
      leave();
      return true;
    }
    const auto gathering = options_.matchmaking ? 4 * config_.matchmaking_time : duration{};
    if (now_ > config_.round_timeout + gathering) return false;
    notice();
    pass(options_.matchmaking && now_ < gathering ? config_.poll_interval
                                                  : config_.sender_timeout / 4);
    for (auto& one : members_)
      if (one.alive && one.round && now_ - one.began > config_.round_timeout)
        one.round->on_round_timeout();
  }
}

void round_lab::leave() {
  // The actor of a member that is not needed ends, and members that watch it learn of that.
  for (bool again = true; again;) {
    again = false;
    for (std::uint32_t m = 0; m < size(); ++m) {
      auto& one = members_[m];
      if (!one.alive || one.left || !one.round || !one.round->idle()) continue;
      again = one.left = true;
      for (std::uint32_t to = 0; to < size(); ++to)
        if (to != m && !cut_.contains({m, to}))
          under_way_[{m, to}].push_back({order_++, std::nullopt});
    }
    settle();
  }
}

void round_lab::kill(std::uint32_t member, bool lost) {
  if (!members_[member].alive) return;
  members_[member].alive = false;
  for (std::uint32_t m = 0; m < size(); ++m) {
    if (m == member) continue;
    if (lost) under_way_[{member, m}].clear();
    if (!cut_.contains({member, m})) under_way_[{member, m}].push_back({order_++, std::nullopt});
  }
}

void round_lab::cut(std::uint32_t a, std::uint32_t b, bool notice_now) {
  for (auto which : {pair{a, b}, pair{b, a}}) {
    cut_.insert(which);
    unnoticed_.insert(which);
    under_way_[which].clear();
  }
  if (notice_now) notice();
}

void round_lab::notice() {
  for (auto which : std::exchange(unnoticed_, {}))
    under_way_[which].push_back({order_++, std::nullopt});
}

std::string round_lab::outcomes() const {
  std::string out;
  for (const auto& one : members_)
    out += one.result ? "opsf"[static_cast<std::size_t>(one.result->outcome)] : '-';
  return out;
}

std::optional<std::string> round_lab::violation_of(const round_result& result,
                                                   const part_outcome& stretch) const {
  if (options_.codec != kernels::codec::none && options_.codec != kernels::codec::top_k)
    return std::nullopt;
  const auto begin = group_.boundaries[stretch.part], end = group_.boundaries[stretch.part + 1];
  aggregate_claim claim;
  for (auto s : stretch.senders)
    claim.inputs.push_back({static_cast<double>(group_.members[s].weight),
                            members_[s].round->contribution().floats().subspan(begin, end - begin),
                            s});
  claim.inputs_begin = begin;
  claim.begin = stretch.begin;
  claim.result = result.values.floats().subspan(stretch.begin, stretch.end - stretch.begin);
  claim.setting = {&config_.aggregator->options, options_.aggregation, result.values.size() / 4,
                   options_.chunk_bytes / 4, group_.group.high};
  return config_.aggregator->verify(claim);
}

std::vector<std::string> round_lab::errors() const {
  std::vector<std::string> out = suspicions;
  const round_result* first = nullptr;
  // Values are below 190 and are encoded twice. The result averages the values that top_k leaves.
  const bool drops = options_.codec == kernels::codec::top_k;
  const double tolerance = 1e-4 + (drops ? 0 : 2 * 190 * kernels::largest_loss(options_.codec));
  for (std::uint32_t m = 0; m < size(); ++m) {
    if (!members_[m].result) continue;
    const auto& result = *members_[m].result;
    auto wrong = [&](const std::string& what) {
      out.push_back(fmt::format("member {}: {}", m, what));
    };
    if ((result.outcome == outcome::ok) != (result.reason == reason::none))
      wrong("a reason that does not go with the outcome");
    if (!result.succeeded()) continue;
    // A conduct may take fewer votes.
    if (options_.conduct == "honest") {
      const auto& by = *members_[m].host;
      if (!result.certificate)
        wrong("no certificate");
      else if (auto fine = check(*result.certificate,
                                 [&](const key256& key, const digest& what, const signature& with) {
                                   return by.is_signed_by(key, what, with);
                                 });
               !fine)
        wrong(fine.error());
      else if (options_.members[m].takes &&
               version_of(group_.boundaries, group_.chunk_bytes, result.parts, result.values) !=
                   result.certificate->version)
        wrong("a certificate for another result");
    }
    if (!options_.members[m].takes) {
      if (!result.values.empty() || !result.parts.empty()) wrong("a result of who takes none");
      continue;
    }
    if (first == nullptr) first = &result;
    if (std::memcmp(result.values.bytes().data(), first->values.bytes().data(),
                    first->values.size()) != 0)
      wrong("other bits");
    if (result.outcome != first->outcome || result.parts.size() != first->parts.size())
      wrong("other parts");
    std::uint64_t at = 0;
    bool complete = true;
    for (std::size_t i = 0; i < result.parts.size(); ++i) {
      const auto& part = result.parts[i];
      if (part.begin != at) wrong("a gap between parts");
      at = part.end;
      if (i < first->parts.size() && part.senders != first->parts[i].senders)
        wrong("other senders");
      double total = 0;
      for (auto s : part.senders) total += static_cast<double>(group_.members[s].weight);
      if (static_cast<double>(part.weight) != total)
        wrong("a weight that is not that of its senders");
      for (std::uint32_t s = 0; s < size(); ++s)
        if (group_.members[s].weight > 0 &&
            std::find(part.senders.begin(), part.senders.end(), s) == part.senders.end())
          complete = false;
      if (const auto violation = violation_of(result, part)) wrong(*violation);
      for (auto j = part.begin; j < part.end && config_.aggregator == &mean_aggregator(); ++j) {
        double sum = 0;
        for (auto s : part.senders)
          sum += static_cast<double>(group_.members[s].weight) *
                 static_cast<double>(members_[s].round->contribution().floats()[j]);
        if (std::abs(sum / total - static_cast<double>(result.values.floats()[j])) > tolerance) {
          wrong(fmt::format("value {} is not the mean of its senders", j));
          break;
        }
      }
    }
    if (at != group_.boundaries.back()) wrong("parts that do not cover the vector");
    if (complete != (result.outcome == outcome::ok))
      wrong("an outcome that does not go with the parts");
  }
  return out;
}

} // namespace shoal::actors::testing
