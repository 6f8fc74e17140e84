// A process of a cluster: its links with other hosts, its reports and its answers to operators.
#include "actors/trust/identity.hpp"
#include "netem/wire/certificates.hpp"
#include "netem/wire/end_reasons.hpp"
#include "netem/wire/plain_words.hpp"
#include "netem/wire/signing_key.hpp"
#include "scenarios/record/version.hpp"
#include "scenarios/runner/bans_file.hpp"
#include "scenarios/runner/member_keys.hpp"
#include "scenarios/runner/operator_answers.hpp"
#include "scenarios/runner/run_state.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>

#include <cstring>
#include <span>

namespace shoal::scenarios {

real_network runner::state::network_between_hosts() {
  real_network out;
  auto& wire = out.options;
  const auto say = [this](const std::string& line) {
    if (options.node && options.node->say) options.node->say(line);
  };
  wire.scenario = common_text(what);
  wire.difference = first_difference;
  wire.on_up = [this, say](netem::host_index mine, const netem::wire::connected_peer& other) {
    if (!other.service) say("linked with " + netem::wire::host_in_words(other.name, other.address));
    in->met(other.host, other.name);
    const auto peer = in->peer_id_of(other.host);
    {
      std::lock_guard guard(watching);
      // A member may restart as often as it likes.
      if (names_of_peers.size() >= most_names_of_peers) names_of_peers.clear();
      names_of_peers.insert_or_assign(peer, other.name);
      deserted.linked(other.name);
      unreached.erase(other.address);
    }
    tell_node<actors::introduced>(mine, other);
  };
  wire.on_control_request = [this](netem::host_index, const netem::wire::control_client& who,
                                   const std::string& question) { return answer(who, question); };
  const auto say_deserted = [this, say] {
    say(fmt::format("everybody has left; it ends in {} unless somebody comes",
                    to_string(deserted_for())));
  };
  wire.on_left = [this, say_deserted](netem::host_index, const std::string& name) {
    {
      std::lock_guard guard(watching);
      if (over || !may_be_deserted() || !deserted.left(name, in->clock().now()) || goal.reached())
        return;
    }
    say_deserted();
  };
  wire.on_revocation_list = [say](netem::host_index, const std::string& text) { say(text); };
  wire.on_down = [this, say, say_deserted](netem::host_index mine,
                                           const netem::wire::connected_peer& other,
                                           const std::string& why) {
    const bool ended = why == netem::wire::has_ended;
    // At the end of a run all hosts end, one after the other.
    if (!draining) say(netem::wire::end_in_words(other.name, other.address, why));
    tell_node<actors::link_lost>(mine, other);
    {
      std::lock_guard guard(watching);
      // Nobody expects a host that has ended to answer.
      if (ended) unreached.insert(other.address);
      if (over || !may_be_deserted() || !deserted.lost(other.name, in->clock().now()) ||
          goal.reached())
        return;
    }
    say_deserted();
  };
  wire.on_refused = [this, say](netem::host_index, const std::string& where,
                                netem::wire::refusal why, const std::string& text, bool fatal) {
    if (why == netem::wire::refusal::ourselves) return;
    if (!fatal) {
      // The wire dials this address repeatedly. Report only the first failure for each reason.
      constexpr std::size_t most_remembered = 4096;
      std::lock_guard guard(watching);
      if (unreached.size() >= most_remembered) unreached.clear();
      const auto what =
          why == netem::wire::refusal::none ? std::string{} : std::string(name_of(why));
      // Each host refuses a name that is taken. One of them is enough.
      const bool of_swarm = why == netem::wire::refusal::name_taken;
      if (!unreached.insert((of_swarm ? std::string{} : where) + what).second) return;
    }
    auto line = why == netem::wire::refusal::none
                    ? fmt::format("no link with {}: {}", where, text)
                    : fmt::format("no link with {}: {}{}{}", where, name_of(why),
                                  text.empty() ? "" : ", ", text);
    if (!fatal && why == netem::wire::refusal::name_taken)
      line += "; it tries again, in case that host is gone";
    say(line);
    if (!fatal) return;
    refused = true;
    in->breaks(line);
  };
  if (!options.node) {
    out.host = [](const std::string&) {
      return netem::wire::host_options{
          .name = {}, .listen = netem::wire::address{"127.0.0.1", 0}, .advertise = {}};
    };
    return out;
  }
  const auto& node = *options.node;
  out.alone = true;
  out.shaped = node.shape;
  out.paced = node.pace;
  wire.credentials = node.credentials;
  wire.admits = node.admits;
  wire.keys = {node.key, node.certificate};
  out.bans = known_bans;
  if (node.key) out.keys = member_keys_of(node.name, node.key, node.certificate);
  const auto up = node.uplink.value_or(role.peer ? hosts[*role.peer].up : what.data.up);
  out.host = [&node, up](const std::string&) {
    return netem::wire::host_options{.name = {},
                                     .listen = node.listen,
                                     .advertise = node.advertise,
                                     .uplink = node.shape ? 0 : up.bits_per_second,
                                     .relay_bytes = node.relay_bytes};
  };
  return out;
}

/// Reads the node's file of bans. A line that proves nothing bans nobody.
result<void> runner::state::load_known_bans() {
  if (!options.node || options.node->bans.empty()) return {};
  auto read = load_bans(options.node->bans);
  if (!read) return failure{read.error()};
  known_bans = std::move(read->all);
  if (!options.node->say) return {};
  if (!read->skipped.empty())
    options.node->say(fmt::format(
        "warning: '{}': {}{}", options.node->bans, read->skipped.front(),
        read->skipped.size() == 1 ? "" : fmt::format(", and {} more", read->skipped.size() - 1)));
  for (const auto& each : known_bans)
    options.node->say(fmt::format("refuses {}, which it banned at {} for {}", name_of_banned(each),
                                  netem::wire::utc_text(each.since_utc_ns),
                                  actors::meaning_of(each.what.what)));
  return {};
}

/// The name of a banned member, or its id.
std::string runner::state::name_of_banned(const banned_member& what) {
  return what.name.empty()
             ? fmt::format("member {}", actors::member_of(actors::culprit_of(what.what.what)).hex())
             : what.name;
}

/// Saves all bans of this node, so that a restart does not forget them.
void runner::state::on_ban(const actors::host& by, const banned_member& what) {
  if (!options.node) return;
  const auto say = [this](const std::string& line) {
    if (options.node->say) options.node->say(line);
  };
  say(fmt::format("bans {} for {}", name_of_banned(what), actors::meaning_of(what.what.what)));
  if (options.node->bans.empty()) return;
  std::lock_guard guard(saving_bans);
  if (const auto done = save_bans(options.node->bans, in->bans_of(by)); !done)
    say(fmt::format("warning: the ban ends with this process: {}", done.error()));
}

/// Tells the DHT node of this host about the node of a host with which a link begins or ends.
template <class Message>
void runner::state::tell_node(netem::host_index mine, const netem::wire::connected_peer& other) {
  if (!options.node || !other.service) return;
  caf::actor node;
  const auto machine = in->net().machine_of(mine);
  {
    std::lock_guard guard(watching);
    if (const auto found = nodes.find(machine); found != nodes.end()) node = found->second;
  }
  if (node) in->clock().as_host(mine, [&] { caf::anon_send(node, Message{other.service}); });
}

void runner::state::meet(netem::host_index mine, const netem::wire::connected_peer& other) {
  tell_node<actors::introduced>(mine, other);
}

/// Signs each contribution at once, so that a killed process leaves a signed contribution.
void runner::state::on_contribution(const run_directory* to, const std::string& scenario_hash,
                                    const swarm_round& round, std::uint64_t samples) {
  ++contributed.rounds;
  contributed.samples += samples;
  contributed.epoch = round.epoch;
  const auto text = contribution_text(contributed, options.node->name, scenario_hash,
                                      started_utc_ns, started_utc_ns + round.ended.count());
  contribution = options.node->sign(contribution_kind, text);
  // Ignore a full disk here. The writers of essential files report it.
  if (to != nullptr) static_cast<void>(to->write(contribution_file, contribution));
}

node_report runner::state::report() {
  node_report out;
  out.name = options.node->name;
  out.scenario = what.name;
  out.version = version();
  out.leaving = draining || told_to_leave;
  out.epochs_planned = what.training.epochs;
  const auto now = in->clock().now();
  const auto machine = role.peer ? machines[*role.peer] : shards.front().machine;
  const auto host = in->net().host_on(machine);
  if (host != netem::no_host) out.neighbours = neighbours_of(in->wire()->connected_peers(host));
  if (host != netem::no_host)
    for (const auto& each : in->bans_of(in->host_at(host)))
      out.bans.push_back({actors::member_of(actors::culprit_of(each.what.what)).hex(), each.name,
                          actors::meaning_of(each.what.what),
                          netem::wire::utc_text(each.since_utc_ns), to_line(each)});
  std::lock_guard guard(watching);
  reported.fill(now, out);
  out.contribution = contribution;
  const auto progress = observers->progress();
  if (!work->work()->is_size_only()) {
    out.train_loss = progress.train_loss;
    out.held_out_loss = progress.held_out_loss;
  }
  out.violations = progress.violations;
  const auto& counts = observers->rounds();
  for (std::size_t i = 0; i < counts.by_outcome.size(); ++i)
    out.rounds_by_outcome[std::string(actors::outcome_names[i])] = counts.by_outcome[i];
  out.rounds_by_reason = counts.by_reason;
  out.role = !role.peer ? "shard" : hosts[*role.peer].role->name;
  if (!role.peer)
    out.phase = shards.front().role && *shards.front().role == actors::replica_role::primary
                    ? "serving"
                    : "following";
  for (const auto bytes : bytes_sent()) out.bytes_sent += bytes;
  return out;
}

netem::wire::control_answer runner::state::answer(const netem::wire::control_client& who,
                                                  const std::string& question) {
  return answer_to(who, question,
                   {options.node->name, [this] { return report(); },
                    [this] { return !told_to_leave.exchange(true); }, options.node->say});
}

} // namespace shoal::scenarios
