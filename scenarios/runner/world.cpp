#include "scenarios/runner/world.hpp"

#include "actors/conduct/conduct.hpp"
#include "actors/host_messages.hpp"
#include "actors/messages.hpp"
#include "actors/observe.hpp"
#include "actors/trust/identity.hpp"
#include "actors/trust/known_groups.hpp"
#include "actors/trust/proof.hpp"
#include "actors/trust/verdict.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"
#include "netem/wire/certificates.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace shoal::scenarios {

/// Work for a thread of the pool. The simulating thread owns it and waits for it, so actors whose
/// last address the work has end there.
struct computation {
  explicit computation(std::function<void()> what) : work(std::move(what)) {}
  computation(const computation&) = delete;
  ~computation() {
    if (done.valid()) done.wait();
  }
  std::function<void()> work;
  std::shared_future<void> done;
};

namespace {

// Virtual worlds begin at a fixed UTC, so that record expiry times are equal in all runs.
constexpr std::int64_t epoch_utc_ns = 1'700'000'000'000'000'000;

std::uint64_t name_key(std::string_view text) {
  return hash_of(std::as_bytes(std::span(text))).prefix();
}

/// The peer id of a host that other processes know, too: 64 bits of a hash of member and
/// incarnation. A member that wants another host's id has to try 2^64 keys.
actors::peer_id id_of_node(const caf::node_id& node) {
  const auto* data = node ? dynamic_cast<const caf::node_id::default_data*>(&*node) : nullptr;
  if (data == nullptr) return 0;
  const auto member = actors::member_of(node);
  return hasher{}
      .add(std::string_view{"shoal.peer"})
      .add(member.high)
      .add(member.low)
      .add(data->process_id())
      .finish()
      .prefix();
}

netem::message_class classify(const caf::type_erased_tuple& content) {
  auto kind = actors::kind_of(content);
  return {static_cast<std::uint8_t>(kind.kind), kind.name, kind.bytes,
          kind.kind == actors::traffic::control};
}

} // namespace

class world::emulated_host final : public actors::host {
public:
  emulated_host(world& in, netem::host_index index, netem::machine_index machine)
      : world_(in), index_(index), machine_(machine), name_(in.net().name_of(index)),
        id_(in.peer_id_of(index)),
        key_(in.has_keys() ? in.options_.real->keys->key : actors::stand_in_key(name_)),
        bans_(in.book_of(machine)) {}

  std::string_view name() const override { return name_; }
  actors::peer_id id() const override { return id_; }
  netem::host_index index() const noexcept { return index_; }
  netem::machine_index machine() const noexcept { return machine_; }

  actors::ban_result ban(const actors::proof& what) override;
  void remember_group(const actors::group_id& group, std::vector<actors::key256> members) override;
  bool is_banned(const actors::member_id& who) const noexcept override { return bans_->has(who); }
  bool refuses(const caf::strong_actor_ptr& sender) const noexcept override {
    return bans_->any() && sender && is_banned(member_of(sender));
  }

  const actors::key256& key() const override { return key_; }
  actors::signature sign(const digest& statement) const override {
    const auto text = world_.in_this_swarm(statement);
    return world_.has_keys() ? world_.options_.real->keys->sign(text)
                             : actors::stand_in_signature(world_.seed(), key_, text);
  }
  bool is_signed_by(const actors::key256& key, const digest& statement,
                    const actors::signature& by) const override {
    return world_.is_signed_by(key, statement, by);
  }
  std::string certificate() const override {
    return world_.has_keys() ? world_.options_.real->keys->certificate : std::string{};
  }
  std::string certificate_of(const actors::key256& key) const override {
    if (key == key_) return certificate();
    return world_.admitted_ ? world_.admitted_->certificate_of(key, world_.utc_ns()) : "";
  }
  bool admits(const actors::key256& key, std::string_view certificate) override {
    return world_.admits(key, certificate);
  }
  actors::peer_id peer_of(const caf::strong_actor_ptr& address) const override {
    if (!address) return 0;
    if (world_.options_.real && world_.options_.real->alone)
      return address->node() == world_.system().node() ? id_ : id_of_node(address->node());
    const auto host = world_.net_->host_of(caf::actor_cast<caf::actor>(address));
    return host == netem::no_host ? 0 : world_.host_at(host).id();
  }
  actors::member_id member_of(const caf::strong_actor_ptr& address) const override {
    if (!address) return {};
    if (address->node() == world_.system().node()) return actors::member_of(key_);
    return actors::member_of(address->node());
  }

  std::int64_t utc_ns() const override {
    return world_.utc_ns() + world_.clock_offset(machine_).count();
  }
  rng random_stream(std::string_view name) const override {
    const auto incarnation = world_.net_->incarnation(index_);
    return world_.secret_ ? secret_stream(*world_.secret_, name, name_key(name_), incarnation)
                          : stream(world_.options_.seed, name, name_key(name_), incarnation);
  }
  caf::actor address_of(const caf::actor& local) override { return world_.net_->address_of(local); }
  std::uint64_t rate_up() const override {
    return static_cast<std::uint64_t>(world_.net_->rate_up(index_).bits_per_second);
  }
  std::uint64_t rate_down() const override {
    return static_cast<std::uint64_t>(world_.net_->rate_down(index_).bits_per_second);
  }

  std::uint64_t seen_address(const caf::actor& other) override {
    return world_.net_->public_address(world_.net_->host_of(other), index_);
  }
  bool has_relay() const override { return world_.net_->relay_left(); }
  void dial(const caf::actor& other, duration timeout, const caf::actor& notify,
            std::uint64_t token) override {
    const auto outcome = world_.net_->dial(index_, world_.net_->host_of(other));
    const bool opens = outcome.opens && outcome.round_trip <= timeout;
    tell_at(world_.clock_.now() + (opens ? outcome.round_trip : timeout), notify,
            actors::dialled{token, opens});
  }

  void run(std::string_view job, std::function<void()> work, duration time,
           const caf::actor& notify, std::uint64_t token) override {
    if (world_.options_.real && !world_.options_.real->paced) time = {};
    const auto start = world_.clock_.now(), paused = world_.net_->paused_time(index_);
    auto tell = [this, notify, token] {
      if (!world_.net_->alive(index_)) return;
      world_.clock_.as_host(index_, [&] { caf::anon_send(notify, actors::work_done{token}); });
    };
    if (world_.options_.mode == netem::time_mode::virtual_time) {
      auto running = std::make_shared<computation>(std::move(work));
      running->done = world_.pool_->submit([what = running.get()] { what->work(); });
      world_.after_host_time(index_, start, paused, time,
                             [this, job = std::string(job), running, tell] {
                               try {
                                 running->done.get();
                               } catch (...) {
                                 return world_.job_threw(job, name_, std::current_exception());
                               }
                               tell();
                             });
      return;
    }
    // A step lasts as long as its profile says, or longer if the computation takes longer.
    world_.pool_->submit(
        [this, job = std::string(job), work = std::move(work), start, paused, time, tell] {
          try {
            work();
          } catch (...) {
            return world_.job_threw(job, name_, std::current_exception());
          }
          auto late = world_.clock_.now() - (start + time);
          {
            std::lock_guard guard(world_.mutex_);
            ++world_.late_.steps;
            world_.late_.profile_seconds += to_seconds(time);
            if (late > duration{}) {
              ++world_.late_.late_steps;
              world_.late_.late_seconds += to_seconds(late);
            }
          }
          world_.after_host_time(index_, start, paused, time, tell);
        });
  }

  void probe(std::string_view point) override {
    if (world_.on_probe) world_.on_probe(index_, point);
  }
  bool failpoint(std::string_view branch) override {
    return world_.takes_failpoint && world_.takes_failpoint(index_, branch);
  }
  void observe(const actors::observation& what) override {
    // Ignore observations of an actor whose host is dead.
    if (world_.on_observation && world_.net_->alive(index_)) world_.on_observation(*this, what);
  }
  void arriving() noexcept override { world_.net_->note_arrival(index_); }

private:
  /// Requires: the proof holds.
  actors::ban_result ban_by(const actors::proof& what);

  template <class Message>
  void tell_at(duration when, const caf::actor& notify, Message message) {
    world_.clock_.at(when, [this, notify, message] {
      if (world_.net_->alive(index_))
        world_.clock_.as_host(index_, [&] { caf::anon_send(notify, message); });
    });
  }

  world& world_;
  netem::host_index index_;
  netem::machine_index machine_;
  std::string name_;
  actors::peer_id id_;
  actors::key256 key_;
  const std::shared_ptr<ban_book> bans_;
  std::mutex groups_mutex_;
  actors::known_groups groups_;
};

actors::ban_result world::emulated_host::ban(const actors::proof& what) {
  const auto& culprit = actors::culprit_of(what);
  if (culprit == key_ || is_banned(actors::member_of(culprit))) return actors::ban_result::known;
  const auto is_signed = [this](const auto& key, const auto& text, const auto& by) {
    return world_.is_signed_by(key, text, by);
  };
  {
    std::lock_guard guard(groups_mutex_);
    const auto found = groups_.examine(what, is_signed);
    if (found != actors::ban_result::banned) return found;
  }
  return ban_by(what);
}

actors::ban_result world::emulated_host::ban_by(const actors::proof& what) {
  const auto& culprit = actors::culprit_of(what);
  const auto member = actors::member_of(culprit);
  const banned_member banned{{what, world_.swarm_}, utc_ns(), world_.name_behind(culprit)};
  if (!bans_->add(banned)) return actors::ban_result::known;
  const auto peer = world_.peer_behind(culprit);
  observe(actors::member_banned{peer, member, actors::meaning_of(what)});
  observe(actors::proof_taken{peer, member, banned.name, banned.what});
  world_.refuse(machine_, culprit);
  if (world_.on_ban) world_.on_ban(*this, banned);
  return actors::ban_result::banned;
}

void world::emulated_host::remember_group(const actors::group_id& group,
                                          std::vector<actors::key256> members) {
  std::lock_guard guard(groups_mutex_);
  groups_.remember(group, std::move(members));
}

world::world(world_options options)
    : options_(std::move(options)), config_([this] {
        auto config = std::make_unique<netem::system_config>(options_.mode, options_.actor_threads);
        actors::register_messages(*config);
        return config;
      }()),
      system_(std::make_unique<caf::actor_system>(*config_)),
      clock_(netem::coordinator::of(*system_)),
      swarm_(options_.real
                 ? hash_of(std::as_bytes(std::span(options_.real->options.scenario))).hex()
                 : std::string{}),
      admitted_(has_keys() ? std::make_unique<admitted_keys>(options_.real->options.admits)
                           : nullptr) {
  system_->await_actors_before_shutdown(false);
  netem::fabric_options net;
  net.seed = options_.seed;
  net.identity = [this](const std::string& name) { return identity_of(name); };
  net.detection_time = options_.detection_time;
  net.classify = classify;
  net.on_event = options_.on_event;
  net.model = options_.model;
  net.tcp = options_.tcp;
  net.on_transfer = options_.on_transfer;
  net.hole_punching = options_.hole_punching;
  net.alter = [this](netem::host_index from, const caf::actor& to, caf::message content) {
    std::shared_ptr<actors::conduct> by;
    {
      std::lock_guard guard(mutex_);
      by = altered_by_.at(from);
    }
    std::vector<actors::outgoing_message> changed;
    by->alter({to, std::move(content)}, changed);
    std::vector<netem::altered_message> out;
    for (auto& each : changed) out.push_back({std::move(each.to), std::move(each.content)});
    return out;
  };
  if (options_.real) {
    // In a cluster, no other host may predict this one's draws.
    if (options_.real->alone) secret_ = random_secret();
    SHOAL_CHECK(options_.mode == netem::time_mode::wall_clock, "a real network takes real time");
    auto& wire = options_.real->options;
    wire.detection_time = options_.detection_time;
    wire.bulk_connections = options_.tcp.connections;
    wire.acceptable = actors::goes_between_hosts;
    wire.utc_ns = [this] { return utc_ns(); };
    wire.banned = [this](const std::string& identity) {
      return is_banned(actors::member_of(actors::key_from(identity)));
    };
    wire_ = std::make_unique<netem::wire::network>(wire);
    net.over = wire_.get();
    net.shaped = options_.real->shaped;
  }
  net_ = std::make_unique<netem::fabric>(*system_, std::move(net));
  if (wire_) wire_->use(*system_, *net_);
  pool_ = std::make_unique<compute_pool>(options_.compute_threads, options_.prepare_compute_thread);
}

void world::stop() {
  net_->stop_reporting();
  auto hosts = [this] {
    std::lock_guard guard(mutex_);
    std::vector<netem::host_index> out;
    for (auto& [index, host] : hosts_) out.push_back(index);
    return out;
  }();
  for (auto index : hosts) net_->kill(index, netem::kill_scope::process);
  if (wire_) wire_->close();
  pool_.reset();
  clock_.settle();
  clock_.clock().cancel_all();
  on_observation = {};
  on_ban = {};
  on_probe = {};
  takes_failpoint = {};
}

world::~world() {
  // No actor may outlive the world.
  stop();
  net_.reset();
  system_.reset();
}

void world::after_host_time(netem::host_index host, duration start, duration paused_before,
                            duration time, std::function<void()> action) {
  const auto due = start + time + (net_->paused_time(host) - paused_before);
  clock_.at(due, [this, host, start, paused_before, time, due, action = std::move(action)] {
    if (net_->paused(host))
      return net_->when_resumed(
          host, [=, this] { after_host_time(host, start, paused_before, time, action); });
    if (start + time + (net_->paused_time(host) - paused_before) > due)
      return after_host_time(host, start, paused_before, time, action);
    action();
  });
}

void world::set_clock(netem::machine_index machine, duration offset, double drift) {
  std::lock_guard guard(clocks_mutex_);
  clocks_[machine] = {offset, drift, clock_.now()};
}

duration world::clock_offset(netem::machine_index machine) const {
  std::lock_guard guard(clocks_mutex_);
  const auto found = clocks_.find(machine);
  if (found == clocks_.end()) return {};
  const auto& [offset, drift, since] = found->second;
  return offset + from_seconds(drift * to_seconds(clock_.now() - since));
}

distortion world::late() const {
  std::lock_guard guard(mutex_);
  return late_;
}

std::optional<std::string> world::broken() const {
  std::lock_guard guard(mutex_);
  return broken_;
}

std::int64_t world::utc_ns() const {
  if (options_.real && options_.real->alone)
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  return epoch_utc_ns + clock_.now().count();
}

actors::peer_id world::peer_id_of(netem::host_index host) const {
  const auto incarnation = net_->incarnation(host);
  if (options_.real && options_.real->alone) return id_of_node(net_->node_of(host));
  return ((std::uint64_t{net_->machine_of(host)} + 1) << 16) | incarnation;
}

std::string world::identity_of(const std::string& name) const {
  if (has_keys() && options_.real->keys->name == name)
    return actors::bytes_of(options_.real->keys->key);
  return actors::bytes_of(actors::stand_in_key(name));
}

digest world::in_this_swarm(const digest& statement) const {
  return actors::in_swarm(swarm_, statement);
}

bool world::is_signed_by(const actors::key256& key, const digest& statement,
                         const actors::signature& by) const {
  const auto text = in_this_swarm(statement);
  return has_keys() ? actors::is_signed_by(key, text, by)
                    : by == actors::stand_in_signature(seed(), key, text);
}

actors::peer_id world::peer_behind(const actors::key256& key) const {
  std::lock_guard guard(mutex_);
  actors::peer_id out = 0;
  for (const auto& [index, host] : hosts_)
    if (host->key() == key) out = host->id();
  return out;
}

bool world::admits(const actors::key256& key, std::string_view certificate) {
  // Without keys, a name proves nothing, and all names are admitted.
  if (!has_keys() || key == options_.real->keys->key) return true;
  return admitted_->admits(key, certificate, utc_ns());
}

std::shared_ptr<ban_book> world::book_of(netem::machine_index machine) {
  std::lock_guard guard(mutex_);
  auto& book = bans_[machine];
  if (book) return book;
  book = std::make_shared<ban_book>();
  if (options_.real && options_.real->alone)
    for (const auto& each : options_.real->bans) book->add(each);
  return book;
}

bool world::is_banned(const actors::member_id& who) const {
  std::lock_guard guard(mutex_);
  return std::any_of(bans_.begin(), bans_.end(),
                     [&](const auto& each) { return each.second->has(who); });
}

std::vector<banned_member> world::bans_of(const actors::host& on) const {
  const auto machine = net_->machine_of(index_of(on));
  std::lock_guard guard(mutex_);
  const auto found = bans_.find(machine);
  return found == bans_.end() ? std::vector<banned_member>{} : found->second->all();
}

void world::met(netem::host_index elsewhere, const std::string& name) {
  const auto member = actors::member_of(net_->node_of(elsewhere));
  std::lock_guard guard(mutex_);
  names_.insert_or_assign(member, name);
}

std::string world::name_behind(const actors::key256& key) const {
  {
    std::lock_guard guard(mutex_);
    for (const auto& [index, host] : hosts_)
      if (host->key() == key) return std::string(host->name());
    const auto found = names_.find(actors::member_of(key));
    if (found != names_.end()) return found->second;
  }
  if (!admitted_) return {};
  const auto certificate = netem::wire::read_certificate(admitted_->certificate_of(key, utc_ns()));
  return certificate ? certificate->name : std::string{};
}

void world::refuse(netem::machine_index machine, const actors::key256& key) {
  if (wire_) return; // the network ends the links
  std::set<netem::machine_index> refused;
  {
    std::lock_guard guard(mutex_);
    for (const auto& [index, host] : hosts_)
      if (host->key() == key) refused.insert(host->machine());
  }
  for (const auto other : refused) net_->refuse(machine, other);
}

void world::breaks(std::string why) {
  {
    std::lock_guard guard(mutex_);
    if (!broken_) broken_ = std::move(why);
  }
  clock_.request_stop();
}

void world::job_threw(std::string_view job, std::string_view host, std::exception_ptr what) {
  std::string why = "unknown exception";
  try {
    std::rethrow_exception(what);
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {
  }
  breaks(fmt::format("internal error: compute job '{}' of {} threw: {}", job, host, why));
}

actors::host& world::boot(netem::machine_index machine) {
  std::optional<std::uint32_t> incarnation;
  // Count tenths of a second, because no process restarts faster.
  if (options_.real && options_.real->alone)
    incarnation = static_cast<std::uint32_t>(utc_ns() / 100'000'000);
  auto index = net_->start_host(machine, incarnation);
  book_of(machine); // the bans hold before the first connection
  if (wire_) {
    auto where = options_.real->host(net_->name_of(index));
    where.name = net_->name_of(index);
    where.incarnation = net_->incarnation(index);
    if (auto open = wire_->open(index, std::move(where)); !open) breaks(open.error());
  }
  auto made = std::make_unique<emulated_host>(*this, index, machine);
  std::lock_guard guard(mutex_);
  auto& slot = hosts_[index];
  slot = std::move(made);
  return *slot;
}

void world::alter_messages(const actors::host& on, std::shared_ptr<actors::conduct> by) {
  const auto index = index_of(on);
  {
    std::lock_guard guard(mutex_);
    altered_by_[index] = std::move(by);
  }
  net_->tamper(index);
}

netem::host_index world::index_of(const actors::host& of) const {
  return static_cast<const emulated_host&>(of).index();
}

actors::host& world::host_at(netem::host_index index) {
  std::lock_guard guard(mutex_);
  return *hosts_.at(index);
}

} // namespace shoal::scenarios
