#include "tests/actors/support/mini_world.hpp"

#include "actors/messages.hpp"
#include "actors/trust/proof.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <algorithm>

namespace shoal::actors::testing {

std::int64_t mini_host::utc_ns() const {
  return mini_world::utc_start_ns + (world_.now() + skew).count();
}

rng mini_host::random_stream(std::string_view name) const {
  return stream(world_.seed(), name, id_);
}

void mini_host::run(std::string_view, std::function<void()> work, duration time,
                    const caf::actor& notify, std::uint64_t token) {
  work();
  auto element = caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, work_done{token});
  auto& clock = world_.scheduler().clock();
  clock.schedule_message(clock.now() + time, caf::actor_cast<caf::strong_actor_ptr>(notify),
                         std::move(element));
}

caf::actor mini_host::address_of(const caf::actor& local) {
  world_.own(local.id(), *this);
  return local;
}

signature mini_host::sign(const digest& statement) const {
  return stand_in_signature(world_.seed(), key_, statement);
}

bool mini_host::is_signed_by(const key256& key, const digest& statement,
                             const signature& by) const {
  return by == stand_in_signature(world_.seed(), key, statement);
}

bool mini_host::admits(const key256& key, std::string_view) {
  return std::any_of(world_.hosts_.begin(), world_.hosts_.end(),
                     [&](const mini_host& one) { return one.key_ == key; });
}

ban_result mini_host::ban(const proof& what) {
  const auto culprit = culprit_of(what);
  const auto member = actors::member_of(culprit);
  if (culprit == key_ || is_banned(member)) return ban_result::known;
  const auto found =
      groups.examine(what, [this](const auto& key, const auto& text, const auto& by) {
        return is_signed_by(key, text, by);
      });
  if (found == ban_result::banned) bans.insert(member);
  return found;
}

void mini_host::remember_group(const group_id& group, std::vector<key256> members) {
  groups.remember(group, std::move(members));
}

bool mini_host::refuses(const caf::strong_actor_ptr& sender) const noexcept {
  return sender && !bans.empty() && is_banned(member_of(sender));
}

peer_id mini_host::peer_of(const caf::strong_actor_ptr& address) const {
  const auto* owner = address ? world_.owner_of(address->id()) : nullptr;
  return owner == nullptr ? 0 : owner->id_;
}

member_id mini_host::member_of(const caf::strong_actor_ptr& address) const {
  const auto* owner = address ? world_.owner_of(address->id()) : nullptr;
  return owner == nullptr ? member_id{} : actors::member_of(owner->key_);
}

void mini_host::probe(std::string_view point) {
  if (world_.on_probe) world_.on_probe(*this, point);
}

void mini_host::observe(const observation& what) {
  world_.observations.emplace_back(id_, what);
}

void mini_host::kill() {
  alive_ = false;
  for (const auto& one : actors_) caf::anon_send_exit(one, caf::exit_reason::kill);
}

mini_world::mini_world(std::uint64_t seed, bool serializes)
    : seed_(seed), config_(std::make_unique<caf::actor_system_config>()) {
  if (serializes) register_messages(*config_);
  config_->set("scheduler.policy", caf::atom("testing"));
  system_ = std::make_unique<caf::actor_system>(*config_);
  system_->await_actors_before_shutdown(false);
}

mini_world::~mini_world() {
  for (auto& one : hosts_) one.kill();
  settle();
  for (auto& one : hosts_) one.actors_.clear(); // before the system ends
}

mini_host& mini_world::add_host(std::string name) {
  return hosts_.emplace_back(*this, std::move(name), hosts_.size() + 1);
}

void mini_world::settle() {
  while (scheduler().try_run_once()) {
  }
}

void mini_world::run_for(duration time) {
  auto& clock = scheduler().clock();
  const auto until = clock.now() + time;
  settle();
  while (!clock.schedule().empty() && clock.schedule().begin()->first <= until) {
    clock.trigger_timeout();
    settle();
  }
  clock.current_time = until;
}

duration mini_world::now() const {
  return scheduler().clock().now().time_since_epoch();
}

caf::scheduler::test_coordinator& mini_world::scheduler() const {
  return dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler());
}

} // namespace shoal::actors::testing
