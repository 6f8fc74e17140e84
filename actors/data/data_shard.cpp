#include "actors/data/data_shard.hpp"

#include "actors/data/observations.hpp"
#include "actors/data/sample_ranges.hpp"
#include "actors/dht/messages.hpp"
#include "kernels/base/check.hpp"

#include <caf/actor_cast.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace shoal::actors {

namespace {

constexpr std::uint64_t most_listed_index_blocks = 4096;
/// Ranges that the commits of one member may make the shard report in each lease time.
constexpr std::uint64_t most_reported = 4096;
/// Certificates of one member that prove nothing, in each lease time: each costs many signatures.
constexpr std::uint64_t most_false_proofs = 16;
/// The claims of one member that wait until the backups have confirmed their roles.
constexpr std::size_t most_in_doubt = 64;
/// In each sixteenth of a lease time, a member may waste as many samples as it may have leased.
constexpr int waste_refills = 16;

} // namespace

class data_shard::replica_world final : public shard_replica::io {
public:
  explicit replica_world(data_shard& of) : of_(of) {}
  duration now() const override { return of_.now(); }
  const caf::actor& self() override { return of_.address(); }
  void send(const caf::actor& to, caf::message content) override {
    of_.send(to, std::move(content));
  }
  void watch(const caf::actor& whom) override { of_.monitor(whom); }
  std::optional<std::size_t> replica_of(const caf::strong_actor_ptr& address,
                                        std::string_view certificate) override {
    return address ? of_.settings_.find_shard(address, certificate) : std::nullopt;
  }
  void role_changed() override {
    if (of_.settings_.role) *of_.settings_.role = of_.replica_->role();
    of_.clients_.clear();
    of_.peers_of_.clear();
    of_.owed_.clear();
    of_.in_doubt_.clear();
    of_.proofs_.forget_waiting(); // peers repeat them to the new primary
    of_.publish();
    of_.arm_lease_timer();
  }
  void reserved() override {
    for (const auto& [peer, credit] : std::exchange(of_.owed_, {}))
      if (const auto client = of_.clients_.find(peer); client != of_.clients_.end())
        of_.lease(peer, client->second.address, credit);
  }
  void ledger_lost(std::uint64_t before) override { of_.ledger_lost(before); }
  void merged(const sample_ledger::merge_result& what) override {
    for (const auto& said : what.repeated)
      of_.here().observe(samples_reported{
          "repeated: two primaries let them be used", said.peer, said.epoch, {said.range}});
    if (!what.doubtful.empty())
      of_.here().observe(
          samples_reported{"doubtful: two primaries leased them", 0, 0, what.doubtful});
    of_.moved(sample_state::returned, 0, of_.ledger_->take_skipped());
    for (const auto& loss : what.revoked) of_.tell_lost(loss.peer, loss.ranges);
    of_.arm_lease_timer();
  }
  void refused(std::string why) override { of_.sender_misbehaves(std::move(why)); }

private:
  data_shard& of_;
};

data_shard::data_shard(caf::actor_config& config, host& on, data_shard_config settings,
                       std::shared_ptr<const sample_source> source,
                       std::shared_ptr<sample_ledger> ledger)
    : protocol_actor(config, on), settings_(std::move(settings)), source_(std::move(source)),
      ledger_(std::move(ledger)),
      budgets_({{settings_.max_leased * waste_refills, settings_.max_leased, most_reported,
                 settings_.max_leased * waste_refills, most_false_proofs},
                settings_.lease_time}),
      proofs_(settings_.max_ranges) {
  SHOAL_CHECK(source_ != nullptr && ledger_ != nullptr, "a shard needs a source and a ledger");
  SHOAL_CHECK(source_->sample_bytes() > 0, "samples have a size");
  if (settings_.replication.replicas < 2) return;
  SHOAL_CHECK(settings_.dht, "replicas find each other through the DHT");
  SHOAL_CHECK(settings_.find_shard, "replicas believe only replicas");
  replica_world_ = std::make_unique<replica_world>(*this);
  replica_ = std::make_unique<shard_replica>(*replica_world_, settings_.replication, *ledger_);
}

data_shard::~data_shard() = default;

void data_shard::on_exit() {
  clients_.clear();
  peers_of_.clear();
  proofs_.forget_waiting();
  helper_ = {};
  if (replica_) replica_->clear();
  settings_.dht = nullptr;
  protocol_actor::on_exit();
}

caf::behavior data_shard::make_behavior() {
  if (replica_) return replica_behavior();
  publish();
  if (ledger_->index_block() > 0 && ledger_->next() == ledger_->index_block() * index_block_size) {
    ledger_->mark_all_before_doubtful();
    ledger_lost(ledger_->next());
  }
  // A ledger that was taken over has leases.
  arm_lease_timer();
  return {
      [this](const sample_request& what) { on_request(what); },
      [this](const samples_returned& what) { on_returned(what); },
      [this](const copies_wanted& what) { on_copies(what); },
      [this](const commit& what) { on_commit(what); },
      [this](const proven_commit& what) { on_commit(what); },
      [this](const commit_proof& what) { on_proof(what); },
      [this](const tick& what) {
        if (what.kind == lease_timer) on_lease_timer();
        if (what.kind == publish_timer) publish();
        if (what.kind == proof_timer) on_proof_timer();
      },
      [this](const dial_request& what) { on_dial_request(what); },
      [this](const dialled& what) { on_dialled(what); },
  };
}

caf::behavior data_shard::replica_behavior() {
  set_down_handler([this](caf::scheduled_actor*, caf::down_msg& down) {
    replica_->lost(down.source, down.reason != caf::exit_reason::unreachable);
  });
  replica_->start();
  set_timer(settings_.record_lifetime / 2, publish_timer);
  set_timer(duration{}, beat_timer);
  return {
      [this](const sample_request& what) {
        if (answers()) return on_request(what);
        if (!is_senders(what.reply_to))
          return sender_misbehaves("sample_request: the reply goes to another host");
        send(what.reply_to, not_primary{replica_->known_primary()});
      },
      [this](const samples_returned& what) {
        if (answers()) on_returned(what);
      },
      [this](const copies_wanted& what) { on_copies(what); },
      [this](const commit& what) {
        if (answers()) return on_commit(what);
        refer_to_primary();
      },
      [this](const proven_commit& what) {
        if (answers()) return on_commit(what);
        refer_to_primary();
      },
      [this](const commit_proof& what) {
        if (answers()) on_proof(what);
      },
      [this](const dial_request& what) { on_dial_request(what); },
      [this](const dialled& what) { on_dialled(what); },
      [this](const replica_hello& what) { replica_->on(what, current_sender()); },
      [this](const ledger_update& what) { replica_->on(what, current_sender()); },
      [this](const ledger_received& what) { replica_->on(what, current_sender()); },
      [this](const not_primary& what) { replica_->on(what, current_sender()); },
      [this](const found& what) {
        if (sender_peer() != here().id())
          return sender_misbehaves("found: not from this host's DHT node");
        replica_->found(what.records);
      },
      [this](const tick& what) {
        if (what.kind == lease_timer && !answers())
          lease_timer_runs_ = false;
        else if (what.kind == lease_timer)
          on_lease_timer();
        if (what.kind == publish_timer) {
          publish();
          set_timer(settings_.record_lifetime / 2, publish_timer);
        }
        if (what.kind == proof_timer) on_proof_timer();
        if (what.kind == beat_timer) {
          if (replica_->beat())
            send(settings_.dht, lookup{std::string{data_shard_key}, address(), look_token});
          set_timer(settings_.replication.beat, beat_timer);
        }
      },
  };
}

void data_shard::replicate(std::function<void()> then) {
  if (!replica_) return then ? then() : void();
  moved(sample_state::returned, 0, ledger_->take_skipped());
  replica_->replicate();
  if (then) replica_->when_replicated(std::move(then));
}

void data_shard::ledger_lost(std::uint64_t before) {
  // In a cluster, block numbers derive from the time. A list of ranges cannot cover all indices
  // below them.
  if (before / index_block_size > most_listed_index_blocks)
    return here().observe(samples_reported{
        fmt::format("lost: nobody is here who knew what became of samples before {}", before),
        0,
        0,
        {}});
  std::vector<sample_range> whose;
  append_range(whose, 0, before);
  here().observe(samples_reported{"lost: nobody is left who knew what became of them", 0, 0,
                                  std::move(whose)});
}

void data_shard::on_request(const sample_request& what) {
  const auto peer = sender_peer();
  const auto member = sender_member();
  // Otherwise a small request would send many samples to a host that did not ask.
  if (!is_senders(what.reply_to))
    return misbehaviour(peer, "sample_request: the reply goes to another host");
  if (what.credit > settings_.max_credit)
    return misbehaviour(peer, "sample_request: too much credit");
  const auto held = checked_ranges(what.held, settings_.max_ranges);
  if (!held) return misbehaviour(peer, "sample_request: " + held.error());
  const auto claimed = ledger_->unrecorded(*held);
  if (claimed > budgets_.left(member, member_budgets::claimed, now()))
    return misbehaviour(peer, "sample_request: claims more samples than one member may");
  budgets_.take(member, member_budgets::claimed, claimed, now());

  clients_.insert_or_assign(peer, client{what.reply_to, member});
  peers_of_[member].insert(peer);
  auto renewal = ledger_->renew(peer, *held, now());
  refuse_claim(peer, "sample_request: holds samples that it never got", std::move(renewal.unknown));
  tell_lost(peer, std::move(renewal.lost));
  moved(sample_state::leased, peer, std::move(renewal.claimed));

  if (what.credit > 0 && may_lease(peer, member, what.credit))
    lease(peer, what.reply_to, what.credit);
  forget_idle(peer);
  arm_lease_timer();
  replicate();
}

bool data_shard::may_lease(peer_id peer, member_id member, std::uint32_t credit) {
  std::uint64_t leased = 0;
  for (const auto each : peers_of_[member]) leased += ledger_->leased_by(each);
  if (leased + credit > settings_.max_leased) {
    misbehaviour(peer, "sample_request: too many leases");
    return false;
  }
  if (budgets_.left(member, member_budgets::wasted, now()) > 0) return true;
  misbehaviour(peer, "sample_request: too many samples that it did not use");
  return false;
}

void data_shard::lease(peer_id peer, const caf::actor& to, std::uint32_t credit) {
  if (replica_) replica_->want(credit);
  auto leased = ledger_->lease(peer, credit, now());
  report_doubtful(peer, leased);
  for (const auto& range : leased) stream<samples, proven_samples>(to, range);
  if (index_count(leased) < credit && ledger_->exhausted() && !std::exchange(said_exhausted_, true))
    here().observe(
        samples_reported{"exhausted: this shard has issued its whole index block", 0, 0, {}});
  if (const auto got = index_count(leased); replica_ && got < credit)
    owed_[peer] = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(owed_[peer] + credit - got, settings_.max_credit));
  moved(sample_state::leased, peer, std::move(leased));
  replicate();
  arm_lease_timer();
}

void data_shard::report_doubtful(peer_id peer, std::span<const sample_range> ranges) {
  if (auto doubtful = ledger_->report_uncertain(ranges); !doubtful.empty())
    here().observe(samples_reported{"doubtful: the former primary may have let them be used", peer,
                                    0, std::move(doubtful)});
}

template <class Message, class Proven>
void data_shard::stream(const caf::actor& to, const sample_range& range) {
  const std::size_t size = source_->sample_bytes();
  const auto most =
      static_cast<std::uint32_t>(std::max<std::size_t>(settings_.chunk_bytes / size, 1));
  for (std::uint32_t done = 0; done < range.count;) {
    const auto& corpus = settings_.corpus;
    sample_range piece{range.first + done, std::min(most, range.count - done)};
    if (corpus)
      piece.count = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(piece.count, corpus->left_at(piece.first)));
    payload data;
    if (source_->is_size_only()) {
      data = payload::size_only(piece.count * size);
    } else {
      std::vector<std::byte> bytes(piece.count * size);
      for (std::uint32_t i = 0; i < piece.count; ++i)
        source_->read(piece.first + i, std::span(bytes).subspan(i * size, size));
      data = payload{std::move(bytes)};
    }
    if (corpus)
      send(to, Proven{piece, std::move(data), corpus->proof_of(piece)});
    else
      send(to, Message{piece, std::move(data)});
    done += piece.count;
  }
}

void data_shard::on_copies(const copies_wanted& what) {
  const auto peer = sender_peer();
  if (!is_senders(what.reply_to))
    return misbehaviour(peer, "copies_wanted: the reply goes to another host");
  const auto ranges = checked_ranges(what.ranges, settings_.max_ranges);
  if (!ranges) return misbehaviour(peer, "copies_wanted: " + ranges.error());
  const auto count = index_count(*ranges);
  if (count > budgets_.left(sender_member(), member_budgets::copied, now()))
    return misbehaviour(peer, "copies_wanted: more samples than one member may ask for");
  budgets_.take(sender_member(), member_budgets::copied, count, now());
  for (const auto& range : *ranges) stream<sample_copies, proven_copies>(what.reply_to, range);
}

void data_shard::on_returned(const samples_returned& what) {
  const auto peer = sender_peer();
  if (peer == 0) return sender_misbehaves("samples_returned: from nobody");
  const auto ranges = checked_ranges(what.ranges, settings_.max_ranges);
  if (!ranges) return misbehaviour(peer, "samples_returned: " + ranges.error());
  const auto member = sender_member();
  const auto claimed = ledger_->unrecorded(*ranges);
  if (claimed > budgets_.left(member, member_budgets::claimed, now()))
    return misbehaviour(peer, "samples_returned: claims more samples than one member may");
  budgets_.take(member, member_budgets::claimed, claimed, now());
  auto result = ledger_->give_back(peer, *ranges);
  refuse_claim(peer, "samples_returned: samples that it never got", std::move(result.unknown));
  charge_wasted(peer, result.returned);
  moved(sample_state::returned, peer, std::move(result.returned));
  forget_idle(peer);
  replicate();
}

void data_shard::refuse_claim(peer_id peer, std::string what, std::vector<sample_range> ranges) {
  if (ledger_->may_be_leased_elsewhere(ranges)) return;
  if (!replica_) return misbehaviour(peer, std::move(what));
  when_roles_confirmed(sender_member(),
                       [this, peer, what = std::move(what), ranges = std::move(ranges)] {
                         if (!ledger_->may_be_leased_elsewhere(ranges)) misbehaviour(peer, what);
                       });
}

bool data_shard::when_roles_confirmed(const member_id& whose, std::function<void()> action) {
  auto& mine = in_doubt_[whose];
  if (mine >= most_in_doubt) return false;
  ++mine;
  replica_->when_roles_confirmed([this, whose, action = std::move(action)] {
    if (const auto of = in_doubt_.find(whose); of != in_doubt_.end() && --of->second == 0)
      in_doubt_.erase(of);
    action();
  });
  return true;
}

void data_shard::on_lease_timer() {
  lease_timer_runs_ = false;
  for (auto& loss : ledger_->expire(now())) {
    tell_lost(loss.peer, loss.ranges);
    report_doubtful(loss.peer, loss.ranges);
    charge_wasted(loss.peer, loss.ranges);
    moved(sample_state::returned, loss.peer, std::move(loss.ranges));
    forget_idle(loss.peer);
  }
  replicate();
  arm_lease_timer();
}

void data_shard::arm_lease_timer() {
  if (lease_timer_runs_ || !answers() || !ledger_->has_leases()) return;
  lease_timer_runs_ = true;
  // Peers renew at many different times. Expired leases are collected less often, to save timers.
  const auto coarse = std::max(ledger_->lease_time() / 16, duration{1});
  set_timer(std::max(ledger_->next_expiry() - now(), coarse), lease_timer);
}

void data_shard::publish() {
  if (!settings_.dht) return;
  store what{std::string{data_shard_key}, {}};
  // A record belongs to the node that signed it, so a restarted host cannot replace its earlier
  // record.
  what.entry.subkey = fmt::format("{}#{:x}", here().name(), here().id());
  what.entry.address = address();
  what.entry.expires_utc_ns = here().utc_ns() + settings_.record_lifetime.count();
  // Peers that have no link to this host learn its name from the certificate.
  what.entry.value = shard_record{replica_ ? std::optional(replica_->record()) : std::nullopt,
                                  here().certificate()}
                         .pack();
  send(settings_.dht, std::move(what));
  if (!replica_) set_timer(settings_.record_lifetime / 2, publish_timer);
}

void data_shard::tell_lost(peer_id peer, std::vector<sample_range> ranges) {
  if (ranges.empty()) return;
  if (const auto client = clients_.find(peer); client != clients_.end())
    send(client->second.address, lease_lost{std::move(ranges)});
}

void data_shard::forget_idle(peer_id peer) {
  if (ledger_->leased_by(peer) > 0 || owed_.contains(peer)) return;
  const auto client = clients_.find(peer);
  if (client == clients_.end()) return;
  if (const auto of = peers_of_.find(client->second.member); of != peers_of_.end()) {
    of->second.erase(peer);
    if (of->second.empty()) peers_of_.erase(of);
  }
  clients_.erase(client);
}

void data_shard::charge_wasted(peer_id peer, std::span<const sample_range> ranges) {
  if (const auto client = clients_.find(peer); client != clients_.end())
    budgets_.take(client->second.member, member_budgets::wasted, index_count(ranges), now());
}

void data_shard::on_dial_request(const dial_request& what) {
  if (!helper_.dial(what, current_sender(), here(), caf::actor_cast<caf::actor>(this),
                    settings_.dial_timeout))
    sender_misbehaves("dial request without an address");
}

void data_shard::on_dialled(const dialled& what) {
  if (const auto answer = helper_.done(what)) send(answer->to, answer->what);
}

void data_shard::moved(sample_state to, peer_id peer, std::vector<sample_range> ranges) {
  if (ranges.empty()) return;
  samples_moved what;
  what.to = to;
  what.peer = peer;
  what.samples = std::move(ranges);
  here().observe(what);
}

void data_shard::moved(sample_state to, peer_id peer, std::vector<sample_range> ranges,
                       const commit& by, std::uint32_t parts_included) {
  if (ranges.empty()) return;
  here().observe(samples_moved{to, peer, by.epoch, by.group, std::move(ranges), parts_included,
                               by.parts_total});
}

} // namespace shoal::actors
