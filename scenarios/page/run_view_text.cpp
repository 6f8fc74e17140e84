#include "kernels/compress/codec.hpp"
#include "scenarios/page/page_text.hpp"
#include "scenarios/page/run_view_state.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace shoal::scenarios {

namespace {

constexpr std::size_t most_participants = 200, most_lines = 60, most_links = 120,
                      most_senders = 100;
constexpr std::size_t most_transfers_of_round = 60, most_member_names = 64, loss_bins = 128;

/// Returns the bits of a value in a message. Unknown for top_k, which sends only a share of the
/// values.
double bits_of(std::string_view codec) {
  constexpr std::size_t many = 1U << 20;
  const auto which = kernels::parse_codec(codec);
  if (!which || *which == kernels::codec::top_k) return std::nan("");
  return 8.0 * static_cast<double>(kernels::encoded_bytes(*which, many)) /
         static_cast<double>(many);
}

template <class Row, class Less>
std::vector<std::uint32_t> first_of(std::size_t count, std::size_t most, Row keep, Less less) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < count; ++i)
    if (keep(i)) out.push_back(i);
  const std::size_t n = std::min(most, out.size());
  std::partial_sort(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n), out.end(), less);
  out.resize(n);
  return out;
}

} // namespace

char share_digit(double share) {
  constexpr std::string_view digits =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  return digits[static_cast<std::size_t>(std::clamp(std::lround(share * 61), 0L, 61L))];
}

std::string run_view::state::run_text() const {
  page_text out;
  out.open('{');
  out.key("state").text(run_state);
  out.key("name")
      .text(facts.name)
      .key("description")
      .text(facts.description)
      .key("world")
      .text(facts.world);
  out.key("seed").whole(static_cast<std::int64_t>(facts.seed));
  out.key("time").seconds(axis.end()).key("stop_time").number(to_seconds(facts.stop_time));
  out.key("shoal").text(facts.made_by.shoal).key("build").text(facts.made_by.build);
  out.key("data_digest").text(facts.made_by.data_digest).key("node").text(facts.made_by.node);
  out.key("workload").text(facts.workload).key("method").text(facts.method);
  out.key("parameters").whole(static_cast<std::int64_t>(facts.parameters));
  out.key("epochs_planned").whole(static_cast<std::int64_t>(facts.epochs));
  out.key("target_batch").whole(static_cast<std::int64_t>(facts.target_batch));
  out.key("metrics_interval").text(facts.metrics_interval);
  out.key("command").text(
      fmt::format("shoal run run.yaml{}",
                  facts.made_by.until ? " --until " + to_string(*facts.made_by.until) : ""));
  out.key("join").raw(join_text());
  out.key("compression")
      .open('{')
      .key("codec")
      .text(facts.compression)
      .key("means")
      .text(facts.means_compression);
  const double there = bits_of(facts.compression), back = bits_of(facts.means_compression);
  out.key("bits")
      .number(there)
      .key("means_bits")
      .number(back)
      .key("ratio")
      .number(64 / (there + back))
      .close('}');
  out.key("groups").open('[');
  for (const group& one : groups)
    if (one.peers) {
      const group_facts& f = one.facts;
      out.open('{')
          .key("name")
          .text(f.name)
          .key("region")
          .text(f.region)
          .key("device")
          .text(f.device)
          .key("role")
          .text(f.role);
      out.key("nat")
          .text(f.nat)
          .key("count")
          .whole(static_cast<std::int64_t>(f.count))
          .key("samples_per_second")
          .number(f.samples_per_second);
      out.key("up")
          .number(f.up.bits_per_second)
          .key("down")
          .number(f.down.bits_per_second)
          .close('}');
    }
  out.close(']');
  out.key("notes").open('[');
  for (const std::string& one : notes) out.text(one);
  out.close(']').close('}');
  return out.take();
}

/// Writes how another host joins: the common command line, the addresses to dial, and the names of
/// hosts that are taken.
std::string run_view::state::join_text() const {
  const provenance& by = facts.made_by;
  if (by.invitation.empty()) return "null";
  std::vector<std::string> dial, taken;
  if (nodes) {
    // List running nodes first. List nodes that are gone only if no node runs.
    for (const bool running : {true, false})
      for (const node& one : *nodes)
        if ((one.state == "running") == running && !one.address.empty() &&
            (running || dial.empty()))
          dial.push_back(one.address);
    for (const node& one : *nodes)
      if (one.state == "running") taken.push_back(one.name);
  } else {
    taken.push_back(by.node);
    for (std::string_view rest = by.address.empty() ? by.joins : by.address; !rest.empty();) {
      const std::size_t space = rest.find(' ');
      dial.emplace_back(rest.substr(0, space));
      rest = space == std::string_view::npos ? std::string_view{} : rest.substr(space + 1);
    }
  }
  page_text out;
  out.open('{')
      .key("command")
      .text(by.invitation)
      .key("insecure")
      .flag(by.insecure)
      .key("shards")
      .whole(static_cast<std::int64_t>(facts.shards));
  out.key("dial").open('[');
  for (std::size_t i = 0; i < std::min<std::size_t>(dial.size(), 3);
       ++i) // a reached node tells the addresses of the other nodes
    out.text(dial[i]);
  out.close(']').key("taken").open('[');
  for (const std::string& one : taken) out.text(one);
  out.close(']').close('}');
  return out.take();
}

std::string run_view::state::nodes_text() const {
  page_text out;
  out.open('[');
  for (const node& one : *nodes) {
    out.open('{')
        .key("name")
        .text(one.name)
        .key("group")
        .text(one.group)
        .key("region")
        .text(one.region)
        .key("address")
        .text(one.address);
    out.key("directory")
        .text(one.directory)
        .key("state")
        .text(one.state)
        .key("began")
        .seconds(one.began.count());
    out.key("last")
        .seconds(one.last.count())
        .key("epoch")
        .whole(static_cast<std::int64_t>(one.epoch));
    out.key("rounds")
        .whole(static_cast<std::int64_t>(one.rounds))
        .key("not_ok")
        .whole(static_cast<std::int64_t>(one.rounds_not_ok));
    out.key("samples")
        .whole(static_cast<std::int64_t>(one.samples))
        .key("sent")
        .whole(static_cast<std::int64_t>(one.bytes_sent));
    out.key("rate").number(one.samples_per_second).close('}');
  }
  out.close(']');
  return out.take();
}

std::string run_view::state::series_text() const {
  page_text out;
  out.open('{');
  for (std::size_t i = 0; i < series.columns().size(); ++i) {
    out.key(series.columns()[i].name).open('[');
    for (const auto& row : series.rows()) out.number(row[i]);
    out.close(']');
  }
  out.close('}');
  return out.take();
}

std::string run_view::state::epochs_text() const {
  page_text out;
  out.open('{');
  for (std::size_t i = 0; i < epochs.columns().size(); ++i) {
    out.key(epochs.columns()[i].name).open('[');
    for (const auto& row : epochs.rows()) out.number(row[i]);
    out.close(']');
  }
  out.close('}');
  return out.take();
}

std::string run_view::state::sessions_text() const {
  page_text out;
  out.open('{')
      .key("by")
      .text(single ? "host" : "group")
      .key("bin")
      .number(1e-9 * static_cast<double>(axis.width()));
  out.key("bins").whole(static_cast<std::int64_t>(axis.used())).key("end").seconds(axis.end());
  out.key("states").open('[');
  for (const auto name : session_states) out.text(name);
  out.close(']').key("rows").open('[');
  for (std::size_t i = 0; i < units.size(); ++i) {
    const unit& one = units[i];
    if (one.time.empty()) continue;
    const std::uint32_t in = single ? group_of(static_cast<std::uint32_t>(i))
                                    : static_cast<std::uint32_t>(std::min(i, groups.size() - 1));
    out.open('{')
        .key("name")
        .text(name_of_unit(i))
        .key("group")
        .text(groups[in].facts.name)
        .key("region")
        .text(groups[in].facts.region);
    out.key("hosts").whole(one.hosts).key("shares").open('[');
    for (std::size_t k = 0; k < session_states.size(); ++k) {
      std::string line;
      for (std::size_t bin = 0; bin < axis.used(); ++bin) {
        const std::int64_t from = static_cast<std::int64_t>(bin) * axis.width();
        const std::int64_t width = std::min(axis.width(), axis.end() - from);
        line.push_back(share_digit(static_cast<double>(one.time.get(bin, k)) /
                                   static_cast<double>(std::max<std::int64_t>(width, 1)) /
                                   std::max(one.hosts, 1U)));
      }
      line.resize(line.find_last_not_of('0') + 1); // npos + 1 is 0
      out.text(line);
    }
    out.close(']').close('}');
  }
  out.close(']').key("ends").open('[');
  if (single)
    for (const end& one : ends)
      out.open('[').text(name_of(one.host)).seconds(one.time).text(one.reason).close(']');
  out.close(']').close('}');
  return out.take();
}

std::string run_view::state::participants_text() const {
  const auto seconds_of = [&](const host& who) {
    return who.lived + (who.alive ? axis.end() - who.born : 0);
  };
  const auto sent_by = [](const host& who) {
    return std::accumulate(who.sent.begin(), who.sent.end(), std::uint64_t{});
  };
  const auto put = [&](page_text& out, std::uint64_t samples, std::uint64_t rounds,
                       std::int64_t seconds, std::int64_t loss, std::int64_t loss_samples,
                       std::uint64_t sent) {
    out.key("samples")
        .whole(static_cast<std::int64_t>(samples))
        .key("rounds")
        .whole(static_cast<std::int64_t>(rounds));
    out.key("seconds").seconds(seconds);
    out.key("loss").number(loss_samples > 0 ? 1e-6 * static_cast<double>(loss) /
                                                  static_cast<double>(loss_samples)
                                            : std::nan(""));
    out.key("sent").whole(static_cast<std::int64_t>(sent));
  };
  const auto is_peer = [&](std::uint32_t i) {
    return hosts[i].seen && (i >= named_hosts ? hosts[i].lives > 0 : groups[group_of(i)].peers);
  };
  page_text out;
  out.open('{')
      .key("samples")
      .whole(static_cast<std::int64_t>(contributed_samples))
      .key("hosts")
      .open('[');
  const auto best =
      first_of(hosts.size(), most_participants, is_peer, [&](std::uint32_t a, std::uint32_t b) {
        return std::tuple{hosts[b].samples, seconds_of(hosts[b]), a} <
               std::tuple{hosts[a].samples, seconds_of(hosts[a]), b};
      });
  std::size_t shown = 0;
  for (const std::uint32_t i : best) {
    const host& who = hosts[i];
    const group_facts& in = groups[group_of(i)].facts;
    out.open('{')
        .key("name")
        .text(name_of(i))
        .key("group")
        .text(in.name)
        .key("region")
        .text(in.region)
        .key("alive")
        .flag(who.alive);
    out.key("lives").whole(who.lives);
    put(out, who.samples, who.rounds, seconds_of(who), who.loss, who.loss_samples, sent_by(who));
    out.close('}');
    ++shown;
  }
  struct sums {
    std::uint64_t hosts = 0, alive = 0, samples = 0, rounds = 0, sent = 0;
    std::int64_t seconds = 0, loss = 0, loss_samples = 0;
  };
  std::vector<sums> by_group(groups.size());
  std::size_t all = 0;
  for (std::uint32_t i = 0; i < hosts.size(); ++i) {
    if (!is_peer(i)) continue;
    ++all;
    sums& of = by_group[group_of(i)];
    ++of.hosts;
    of.alive += hosts[i].alive ? 1 : 0;
    of.samples += hosts[i].samples;
    of.rounds += hosts[i].rounds;
    of.sent += sent_by(hosts[i]);
    of.seconds += seconds_of(hosts[i]);
    of.loss += hosts[i].loss;
    of.loss_samples += hosts[i].loss_samples;
  }
  out.close(']').key("more").whole(static_cast<std::int64_t>(all - shown)).key("groups").open('[');
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const sums& of = by_group[g];
    if (of.hosts == 0) continue;
    out.open('{').key("name").text(groups[g].facts.name).key("region").text(groups[g].facts.region);
    out.key("hosts")
        .whole(static_cast<std::int64_t>(of.hosts))
        .key("alive")
        .whole(static_cast<std::int64_t>(of.alive));
    put(out, of.samples, of.rounds, of.seconds, of.loss, of.loss_samples, of.sent);
    out.close('}');
  }
  // Losses use fewer and wider bins, because one of 512 bins holds hardly a round.
  constexpr std::size_t merged = time_axis::bins / loss_bins;
  out.close(']')
      .key("loss_bin")
      .number(1e-9 * static_cast<double>(axis.width()) * merged)
      .key("losses")
      .open('[');
  const auto samples_of = [&](const unit& one) {
    std::int64_t sum = 0;
    for (std::size_t bin = 0; bin < axis.used(); ++bin) sum += one.loss.get(bin, 1);
    return sum;
  };
  std::vector<std::int64_t> weights;
  for (const unit& one : units) weights.push_back(one.loss.empty() ? 0 : samples_of(one));
  for (const std::uint32_t i : first_of(
           units.size(), most_lines, [&](std::uint32_t u) { return weights[u] > 0; },
           [&](std::uint32_t a, std::uint32_t b) {
             return std::pair{weights[b], a} < std::pair{weights[a], b};
           })) {
    out.open('{').key("name").text(name_of_unit(i)).key("bins").open('[');
    for (std::size_t bin = 0; bin < axis.used(); bin += merged) {
      std::int64_t loss = 0, samples = 0;
      for (std::size_t k = bin; k < std::min(bin + merged, axis.used()); ++k) {
        loss += units[i].loss.get(k, 0);
        samples += units[i].loss.get(k, 1);
      }
      if (samples > 0)
        out.open('[')
            .whole(static_cast<std::int64_t>(bin / merged))
            .number(1e-6 * static_cast<double>(loss) / static_cast<double>(samples))
            .close(']');
    }
    out.close(']').close('}');
  }
  out.close(']').close('}');
  return out.take();
}

/// Writes the transfers between members during the round. Transfers with the same hosts and type
/// are merged, and the latest arrival comes first.
std::string run_view::state::transfers_of(const kept_round& round) const {
  struct merged {
    std::int64_t begun = 0, left = 0, arrives = 0, waited = 0;
    std::uint64_t bytes = 0, count = 0, cut = 0, number = 0;
    std::map<std::uint32_t, std::int64_t> why;
  };
  std::set<std::uint32_t> members;
  for (const member& one : round.members) members.insert(one.host);
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint16_t>, merged> rows;
  // Transfers are sorted by the time at which they leave.
  auto at = std::lower_bound(transfers.begin(), transfers.end(), round.what.started,
                             [](const transfer_row& row, std::int64_t t) { return row.left < t; });
  std::uint64_t bytes = 0, count = 0;
  for (; at != transfers.end() && at->left <= round.what.ended; ++at) {
    if (at->begun < round.what.started || !members.contains(at->from) || !members.contains(at->to))
      continue;
    auto [found, fresh] = rows.try_emplace({at->from, at->to, at->type});
    merged& of = found->second;
    if (fresh) {
      of.begun = at->sent;
      of.number = at->number;
    }
    of.begun = std::min(of.begun, at->sent);
    of.waited += std::max<std::int64_t>(at->begun - at->sent, 0);
    of.left = std::max(of.left, at->left);
    of.arrives = std::max(of.arrives, at->cut ? at->left : at->arrives);
    of.bytes += at->bytes;
    ++of.count;
    of.cut += at->cut ? 1 : 0;
    of.why[at->why] += at->held;
    bytes += at->bytes;
    ++count;
  }
  std::vector<std::pair<std::tuple<std::uint32_t, std::uint32_t, std::uint16_t>, const merged*>>
      order;
  for (const auto& [key, row] : rows) order.emplace_back(key, &row);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair{-a.second->arrives, a.second->number} <
           std::pair{-b.second->arrives, b.second->number};
  });
  page_text out;
  out.open('{')
      .key("count")
      .whole(static_cast<std::int64_t>(count))
      .key("bytes")
      .whole(static_cast<std::int64_t>(bytes));
  out.key("rows_in_all").whole(static_cast<std::int64_t>(order.size())).key("rows").open('[');
  for (std::size_t i = 0; i < std::min(order.size(), most_transfers_of_round); ++i) {
    const auto& [key, row] = order[i];
    out.open('{')
        .key("from")
        .text(name_of(std::get<0>(key)))
        .key("to")
        .text(name_of(std::get<1>(key)))
        .key("type")
        .text(words.words[std::get<2>(key)]);
    out.key("number")
        .whole(static_cast<std::int64_t>(row->number))
        .key("count")
        .whole(static_cast<std::int64_t>(row->count));
    out.key("bytes")
        .whole(static_cast<std::int64_t>(row->bytes))
        .key("begun")
        .seconds(row->begun)
        .key("arrives")
        .seconds(row->arrives);
    out.key("cut").whole(static_cast<std::int64_t>(row->cut)).key("waited").seconds(row->waited);
    const auto longest =
        std::max_element(row->why.begin(), row->why.end(), [this](const auto& a, const auto& b) {
          return std::pair{a.second, std::string_view(words.words[b.first])} <
                 std::pair{b.second, std::string_view(words.words[a.first])};
        });
    out.key("why")
        .text(words.words[longest->first])
        .key("held")
        .seconds(longest->second)
        .close('}');
  }
  out.close(']').close('}');
  return out.take();
}

std::string run_view::state::rounds_text() {
  page_text out;
  out.open('{')
      .key("total")
      .whole(static_cast<std::int64_t>(rounds_seen))
      .key("by_outcome")
      .open('{');
  for (std::size_t i = 0; i < outcome_words.size(); ++i)
    out.key(outcome_words[i]).whole(static_cast<std::int64_t>(by_outcome[i]));
  out.close('}').key("by_reason").open('{');
  for (const auto& [reason, count] : by_reason)
    out.key(reason).whole(static_cast<std::int64_t>(count));
  out.close('}').key("points_left_out").flag(ok_stride > 1 || bad_stride > 1);
  // [number, ended, seconds, members, outcome, reason]
  out.key("points").open('[');
  for (const auto* points : {&ok_points, &bad_points})
    for (const point& one : *points) {
      out.open('[')
          .whole(static_cast<std::int64_t>(one.number))
          .seconds(one.ended)
          .seconds(one.ended - one.started);
      out.whole(static_cast<std::int64_t>(one.members))
          .whole(one.outcome)
          .text(words.words[one.reason])
          .close(']');
    }
  out.close(']').key("kept").open('[');
  for (auto& [number, one] : kept) {
    if (!one.transfers)
      one.transfers = (facts.records_transfers && facts.world != "cluster") || !transfers.empty()
                          ? transfers_of(one)
                          : "null";
    out.open('{')
        .key("number")
        .whole(static_cast<std::int64_t>(number))
        .key("epoch")
        .whole(static_cast<std::int64_t>(one.epoch));
    out.key("group")
        .text(one.group)
        .key("started")
        .seconds(one.what.started)
        .key("ended")
        .seconds(one.what.ended);
    out.key("members")
        .whole(static_cast<std::int64_t>(one.what.members))
        .key("outcome")
        .text(outcome_words[one.what.outcome]);
    out.key("reason")
        .text(words.words[one.what.reason])
        .key("samples")
        .whole(static_cast<std::int64_t>(one.samples));
    out.key("first_of_two").flag(one.first_of_two).key("ends").open('[');
    for (std::size_t i = 0; i < std::min(one.members.size(), most_member_names); ++i) {
      const member& who = one.members[i];
      out.open('[')
          .text(name_of(who.host))
          .text(outcome_words[who.outcome])
          .text(words.words[who.reason])
          .close(']');
    }
    out.close(']').key("transfers").raw(*one.transfers).close('}');
  }
  out.close(']').key("attempts").open('[');
  for (const auto& [key, one] : attempts) {
    out.open('{')
        .key("epoch")
        .whole(static_cast<std::int64_t>(key.first))
        .key("reason")
        .text(key.second);
    out.key("first")
        .seconds(one.first)
        .key("last")
        .seconds(one.last)
        .key("count")
        .whole(static_cast<std::int64_t>(one.count))
        .close('}');
  }
  out.close(']')
      .key("transfers_left_out")
      .whole(static_cast<std::int64_t>(transfers_left_out))
      .key("transfers_until");
  if (const auto until = transfers_until())
    out.seconds(*until);
  else
    out.raw("null");
  out.close('}');
  return out.take();
}

std::string run_view::state::faults_text() const {
  page_text out;
  out.open('[');
  for (const fault_span& one : faults) {
    out.open('{').key("begin").seconds(one.begin).key("end");
    if (one.end >= 0)
      out.seconds(one.end);
    else
      out.null();
    out.key("number").whole(static_cast<std::int64_t>(one.number)).key("action").text(one.action);
    out.key("count").whole(static_cast<std::int64_t>(one.hosts)).key("hosts").open('[');
    for (const std::string& name : one.names) out.text(name);
    out.close(']').close('}');
  }
  out.close(']');
  return out.take();
}

std::string run_view::state::traffic_text() const {
  page_text out;
  if (!traffic_known) return "null";
  const auto sum_of = [](const std::array<std::uint64_t, 4>& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{});
  };
  const auto put = [&out](const std::array<std::uint64_t, 4>& bytes) {
    out.open('[');
    for (const std::uint64_t one : bytes) out.whole(static_cast<std::int64_t>(one));
    out.close(']');
  };
  out.open('{')
      .key("kinds")
      .open('[')
      .text("data")
      .text("averaging")
      .text("state")
      .text("control")
      .close(']')
      .key("hosts")
      .open('[');
  std::uint64_t count = 0;
  for (const host& one : hosts) count += sum_of(one.sent) > 0 ? 1 : 0;
  const auto largest = first_of(
      hosts.size(), most_senders, [&](std::uint32_t i) { return sum_of(hosts[i].sent) > 0; },
      [&](std::uint32_t a, std::uint32_t b) {
        return std::pair{sum_of(hosts[b].sent), a} < std::pair{sum_of(hosts[a].sent), b};
      });
  for (const std::uint32_t i : largest) {
    out.open('{')
        .key("name")
        .text(name_of(i))
        .key("group")
        .text(groups[group_of(i)].facts.name)
        .key("bytes");
    put(hosts[i].sent);
    out.close('}');
  }
  out.close(']')
      .key("more")
      .whole(static_cast<std::int64_t>(count - largest.size()))
      .key("regions")
      .open('[');
  std::size_t pairs = 0;
  for (const auto& [pair, bytes] : region_bytes) {
    if (++pairs > most_regions * most_regions) break;
    out.open('{').key("from").text(pair.first).key("to").text(pair.second).key("bytes");
    put(bytes);
    out.close('}');
  }
  out.close(']').close('}');
  return out.take();
}

std::optional<std::int64_t> run_view::state::transfers_until() const {
  const std::size_t most = facts.most_transfers == 0
                               ? most_transfers
                               : std::min<std::size_t>(facts.most_transfers, most_transfers);
  if (transfers.empty() || transfers.size() < most) return std::nullopt;
  return transfers.back().left;
}

std::string run_view::state::links_text() const {
  if (transfers.empty()) return "null";
  struct line {
    std::uint32_t unit;
    std::size_t way;
    double rate; ///< total bytes per second of the hosts
    std::int64_t bytes;
  };
  std::vector<line> lines;
  for (std::uint32_t u = 0; u < units.size(); ++u) {
    if (units[u].bytes.empty()) continue;
    const std::uint32_t in =
        single ? group_of(u)
               : static_cast<std::uint32_t>(std::min<std::size_t>(u, groups.size() - 1));
    for (const std::size_t way : {0, 1}) {
      const data_rate rate = way == 0 ? groups[in].facts.up : groups[in].facts.down;
      std::int64_t bytes = 0;
      for (std::size_t bin = 0; bin < axis.used(); ++bin) bytes += units[u].bytes.get(bin, way);
      if (bytes > 0 && rate.bits_per_second > 0)
        lines.push_back({u, way, rate.bytes_per_second() * std::max(units[u].hosts, 1U), bytes});
    }
  }
  // The fullest lines first.
  std::stable_sort(lines.begin(), lines.end(), [](const line& a, const line& b) {
    return static_cast<double>(a.bytes) / a.rate > static_cast<double>(b.bytes) / b.rate;
  });
  // Ignore the time after the recording stopped: the lines were not idle.
  const auto until = transfers_until();
  const std::int64_t end =
      std::max<std::int64_t>(until ? std::min(*until, axis.end()) : axis.end(), 1);
  const std::size_t bins =
      until ? std::min<std::size_t>(
                  axis.used(), static_cast<std::size_t>((end + axis.width() - 1) / axis.width()))
            : axis.used();
  page_text out;
  out.open('{')
      .key("bin")
      .number(1e-9 * static_cast<double>(axis.width()))
      .key("bins")
      .whole(static_cast<std::int64_t>(bins))
      .key("until");
  if (until)
    out.seconds(end);
  else
    out.raw("null");
  out.key("more")
      .whole(static_cast<std::int64_t>(lines.size() > most_links ? lines.size() - most_links : 0))
      .key("rows")
      .open('[');
  for (std::size_t i = 0; i < std::min(lines.size(), most_links); ++i) {
    const line& one = lines[i];
    std::string use;
    for (std::size_t bin = 0; bin < bins; ++bin)
      use.push_back(share_digit(static_cast<double>(units[one.unit].bytes.get(bin, one.way)) /
                                (one.rate * 1e-9 * static_cast<double>(axis.width()))));
    out.open('{').key("name").text(
        fmt::format("{} of {}", one.way == 0 ? "uplink" : "downlink", name_of_unit(one.unit)));
    out.key("rate")
        .number(8 * one.rate)
        .key("mean")
        .number(static_cast<double>(one.bytes) / (one.rate * 1e-9 * static_cast<double>(end)));
    out.key("use").text(use).close('}');
  }
  out.close(']').close('}');
  return out.take();
}

} // namespace shoal::scenarios
