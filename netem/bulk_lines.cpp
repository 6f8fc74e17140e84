#include "netem/bulk_lines.hpp"

#include <algorithm>

namespace shoal::netem {

static_assert(topology::most_links <= transport::most_links, "every route is a path");

namespace {

/// A connection closes after so long without bulk; later bulk opens another one (model `tcp`).
constexpr duration idle_connection = std::chrono::seconds(60);

} // namespace

bulk_lines::bulk_lines(message_table& messages, paths& ways, const tcp_options& tcp,
                       bool keeps_records)
    : messages_(messages), paths_(ways), flows_(ways.model(), tcp), keeps_records_(keeps_records) {
  if (keeps_records)
    flows_.on_rate([this](const rate_change& what) {
      if (auto& record = connections_[what.tag].record)
        record->steps.push_back({what.at, what.bits_per_second, what.why, what.link, what.sharers});
    });
}

void bulk_lines::set_capacities(link_id up, data_rate up_rate, link_id down, data_rate down_rate,
                                duration now, surroundings& around) {
  flows_.set_capacity(up, up_rate.bits_per_second, now);
  flows_.set_capacity(down, down_rate.bits_per_second, now);
  note_change(around);
}

duration bulk_lines::queueing_delay(host_index from, host_index to, duration now) const {
  duration out{};
  if (flows_.model() == transfer_model::tcp && flows_.active() > 0)
    for (const auto link : paths_.route(from, to, no_host).links())
      if (flows_.flows_on(link) > 0) out += flows_.queueing_delay(link, now);
  return out;
}

// -- connections ----------------------------------------------------------------------------------

std::uint32_t bulk_lines::connect(host_index from, host_index to) {
  auto& named = line_of_[pair_of(from, to)];
  if (named != 0) return named - 1;
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(connections_.size()));
    connections_.emplace_back();
  }
  const auto line = free_.back();
  free_.pop_back();
  auto& made = connections_[line] = {};
  made.from = from;
  made.to = to;
  named = line + 1;
  return line;
}

void bulk_lines::forget_if_idle(std::uint32_t index) {
  const auto& line = connections_[index];
  if (line.first != no_index || line.under_way > 0) return;
  line_of_.erase(pair_of(line.from, line.to));
  free_.push_back(index);
}

void bulk_lines::list(std::uint32_t index) {
  by_sender_.push_front(connections_[index].from, index);
  by_receiver_.push_front(connections_[index].to, index);
  ++sending_;
}

void bulk_lines::unlist(std::uint32_t index) {
  by_sender_.remove(connections_[index].from, index);
  by_receiver_.remove(connections_[index].to, index);
  --sending_;
}

/// The TCP window of a pair. A window that was idle for too long starts anew.
tcp_window& bulk_lines::window_of(host_index from, host_index to, duration now) {
  if (windows_.size() >= windows_.capacity())
    windows_.erase_if(
        [now](std::uint64_t, const tcp_window& w) { return now - w.used_until > idle_connection; });
  auto& window = windows_[pair_of(from, to)];
  if (now - window.used_until > idle_connection) window = {};
  return window;
}

// -- messages -------------------------------------------------------------------------------------

bool bulk_lines::append(std::uint32_t number) {
  auto& message = messages_[number];
  const auto index = message.line = connect(message.from.host, message.to.host);
  auto& line = connections_[index];
  const bool first = line.first == no_index;
  if (first)
    line.first = number;
  else
    messages_[line.last].next = number;
  line.last = number;
  if (first) list(index);
  return first;
}

void bulk_lines::arrived(std::uint32_t line) {
  --connections_[line].under_way;
  forget_if_idle(line);
}

duration bulk_lines::behind_last(std::uint64_t pair, duration at) const {
  const auto* line = line_of_.find(pair);
  return line != nullptr ? std::max(at, connections_[*line - 1].last_arrival) : at;
}

void bulk_lines::start_next(std::uint32_t index, duration now, surroundings& around) {
  auto& line = connections_[index];
  const auto& next = messages_[line.first];
  const auto relay = next.relay;
  const auto duplicate = paths_.between(line.from, line.to).quality.duplicate;
  const auto path = paths_.route(line.from, line.to, relay);
  topology::route back;
  transfer_request what;
  static_cast<path_now&>(what) = paths_.conditions(line.from, line.to, relay);
  what.path = path.links();
  what.bytes = next.bytes;
  if (duplicate > 0)
    what.bytes += static_cast<std::uint64_t>(duplicate * static_cast<double>(next.bytes));
  what.tag = index;
  if (flows_.model() == transfer_model::tcp) what.connection = window_of(line.from, line.to, now);
  if (flows_.model() == transfer_model::lv08) {
    back = paths_.route(line.to, line.from, relay);
    what.way_back = back.links();
  }
  if (keeps_records_) begin_record(line, now);
  line.flow = flows_.start(what, now);
  note_change(around);
  if (around.blocked(line.from, line.to, relay)) stop(index, now, around);
}

void bulk_lines::begin_record(connection& line, duration now) {
  const auto& message = messages_[line.first];
  line.record = std::make_unique<transfer_record>();
  auto& record = *line.record;
  record.number = next_transfer_++;
  record.from = message.from;
  record.to = message.to;
  record.type = message.type;
  record.bytes = message.bytes;
  record.sent = message.sent;
  record.begun = now;
  record.round_trip = paths_.round_trip(line.from, line.to, message.relay);
}

void bulk_lines::end_record(connection& line, duration left, duration arrives, bool cut,
                            surroundings& around) {
  if (!line.record) return;
  line.record->left = left;
  line.record->arrives = arrives;
  line.record->cut = cut;
  around.ended(std::move(line.record));
}

void bulk_lines::finish(duration now, surroundings& around) {
  std::vector<finished_transfer> done;
  flows_.advance(now, done);
  for (const auto& flow : done) {
    const auto index = static_cast<std::uint32_t>(flow.tag);
    auto& line = connections_[index];
    const auto number = line.first;
    auto& message = messages_[number];
    line.first = message.next;
    message.left = flow.at;
    ++line.under_way;
    if (flows_.model() == transfer_model::tcp)
      window_of(line.from, line.to, flow.at) = flow.connection;
    const auto delay =
        flows_.delay_follows() ? paths_.drawn_delay(line.from, line.to, message.relay) : duration{};
    line.last_arrival = std::max(line.last_arrival, message.left + delay);
    around.arrives(number, line.last_arrival);
    end_record(line, flow.at, line.last_arrival, false, around);
    if (line.first != no_index)
      start_next(index, now, around);
    else
      unlist(index);
  }
}

// -- changes of conditions ----------------------------------------------------------------------

void bulk_lines::retune_line(std::uint32_t index, duration now, surroundings& around) {
  const auto& line = connections_[index];
  if (line.first == no_index || line.stopped) return;
  flows_.change(line.flow, paths_.conditions(line.from, line.to, messages_[line.first].relay), now);
  note_change(around);
}

void bulk_lines::retune_all(duration now, surroundings& around) {
  for (std::uint32_t line = 0; line < connections_.size(); ++line) retune_line(line, now, around);
}

void bulk_lines::retune(host_index host, duration now, surroundings& around) {
  for (auto at = by_sender_.first(host); at != no_index; at = by_sender_.next(at))
    retune_line(at, now, around);
  for (auto at = by_receiver_.first(host); at != no_index; at = by_receiver_.next(at))
    retune_line(at, now, around);
}

void bulk_lines::break_lines_of(host_index host, duration now, surroundings& around) {
  std::vector<std::uint32_t> broken;
  for (auto at = by_sender_.first(host); at != no_index; at = by_sender_.next(at))
    broken.push_back(at);
  for (auto at = by_receiver_.first(host); at != no_index; at = by_receiver_.next(at))
    broken.push_back(at);
  // Sorting makes the order independent of the lists.
  std::sort(broken.begin(), broken.end(), [this](std::uint32_t a, std::uint32_t b) {
    return pair_of(connections_[a].from, connections_[a].to) <
           pair_of(connections_[b].from, connections_[b].to);
  });
  for (const auto at : broken) break_index(at, now, around);
}

void bulk_lines::break_line(std::uint64_t pair, duration now, surroundings& around) {
  if (const auto* line = line_of_.find(pair)) break_index(*line - 1, now, around);
}

void bulk_lines::break_index(std::uint32_t index, duration now, surroundings& around) {
  auto& line = connections_[index];
  if (line.first == no_index) return;
  flows_.cancel(line.flow, now);
  end_record(line, now, now, true, around);
  for (auto at = line.first; at != no_index;) {
    const auto next = messages_[at].next;
    around.lost(at);
    at = next;
  }
  line.first = line.last = no_index;
  line.stopped = false;
  unlist(index);
  forget_if_idle(index);
  note_change(around);
}

void bulk_lines::stop(std::uint32_t index, duration now, surroundings& around) {
  auto& line = connections_[index];
  around.waits_at_cut(line.from, line.to, messages_[line.first].relay);
  if (std::exchange(line.stopped, true)) return;
  flows_.stop(line.flow, now);
  note_change(around);
}

void bulk_lines::stop_blocked(duration now, surroundings& around) {
  for (std::uint32_t index = 0; index < connections_.size(); ++index) {
    const auto& line = connections_[index];
    if (line.first != no_index && around.blocked(line.from, line.to, messages_[line.first].relay))
      stop(index, now, around);
  }
}

void bulk_lines::stop_pair(std::uint64_t pair, duration now, surroundings& around) {
  if (const auto* line = line_of_.find(pair))
    if (connections_[*line - 1].first != no_index) stop(*line - 1, now, around);
}

std::optional<bulk_lines::stopped_transfer> bulk_lines::stopped(std::uint64_t pair) const {
  const auto* line = line_of_.find(pair);
  if (line == nullptr || !connections_[*line - 1].stopped) return std::nullopt;
  return stopped_transfer{*line - 1, connections_[*line - 1].flow};
}

void bulk_lines::go_on(const stopped_transfer& what, duration now, surroundings& around) {
  auto& line = connections_[what.line];
  if (line.first == no_index || line.flow != what.flow || !line.stopped) return;
  const auto relay = messages_[line.first].relay;
  if (around.blocked(line.from, line.to, relay)) return;
  line.stopped = false;
  flows_.go_on(line.flow, paths_.conditions(line.from, line.to, relay), now);
  note_change(around);
}

} // namespace shoal::netem
