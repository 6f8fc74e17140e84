#include "scenarios/page/run_facts.hpp"

#include "scenarios/schema/document.hpp"

#include <algorithm>
#include <charconv>

namespace shoal::scenarios {

namespace {

const node* find(const node* from, std::string_view path) {
  while (from != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    const entry* found =
        from->kind == node_kind::mapping ? from->find(path.substr(0, dot)) : nullptr;
    from = found == nullptr ? nullptr : found->value.get();
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
  return from;
}

void take(const node* from, std::string_view path, std::string& into) {
  if (const node* found = find(from, path); found != nullptr && found->kind == node_kind::scalar)
    into = found->text;
}

void take(const node* from, std::string_view path, std::uint64_t& into) {
  std::string text;
  take(from, path, text);
  std::from_chars(text.data(), text.data() + text.size(), into);
}

void take(const node* from, std::string_view path, data_rate& into) {
  std::string text;
  take(from, path, text);
  if (const auto rate = parse_rate(text)) into = *rate;
}

/// The delays between `regions`, as network.links and network.default_delay give them.
std::vector<std::vector<duration>> delays_of(const node* root,
                                             const std::vector<std::string>& regions) {
  const auto delay_in = [](const node* from, std::string_view path, duration otherwise) {
    std::string text;
    take(from, path, text);
    const auto parsed = parse_duration(text);
    return parsed ? *parsed : otherwise;
  };
  const duration usual = delay_in(root, "network.default_delay", std::chrono::milliseconds(50));
  std::vector<std::vector<duration>> out(regions.size(),
                                         std::vector<duration>(regions.size(), usual));
  const auto index = [&regions](const node* link, std::string_view key) {
    std::string name;
    take(link, key, name);
    return static_cast<std::size_t>(std::find(regions.begin(), regions.end(), name) -
                                    regions.begin());
  };
  if (const node* links = find(root, "network.links"); links != nullptr)
    for (const node_ptr& one : links->items) {
      const std::size_t from = index(one.get(), "from"), to = index(one.get(), "to");
      if (from < regions.size() && to < regions.size())
        out[from][to] = out[to][from] = delay_in(one.get(), "delay", usual);
    }
  return out;
}

} // namespace

run_facts facts_of(std::string_view run_yaml) {
  const document parsed = parse_document(run_yaml);
  const node* root = parsed.root.get();
  run_facts out;
  take(root, "name", out.name);
  take(root, "description", out.description);
  take(root, "world", out.world);
  take(root, "seed", out.seed);
  std::string text;
  take(root, "stop_time", text);
  if (const auto time = parse_duration(text)) out.stop_time = *time;
  if (const node* regions = find(root, "network.regions"); regions != nullptr)
    for (const node_ptr& region : regions->items) out.regions.push_back(region->text);
  out.delays = delays_of(root, out.regions);
  if (const node* shown = find(root, "workload.show"); shown != nullptr)
    for (const node_ptr& caption : shown->items) out.shown.push_back(caption->text);
  const std::string first_region = out.regions.empty() ? "everywhere" : out.regions.front();
  if (const node* groups = find(root, "peers"); groups != nullptr)
    for (const entry& one : groups->entries) {
      group_facts group{.name = one.key,
                        .region = first_region,
                        .device = {},
                        .role = "trainer",
                        .nat = "open",
                        .count = 1};
      const node* in = one.value.get();
      take(in, "region", group.region);
      take(in, "device", group.device);
      take(in, "role", group.role);
      take(in, "nat", group.nat);
      take(in, "count", group.count);
      take(in, "up", group.up);
      take(in, "down", group.down);
      text.clear();
      take(root, "devices." + group.device + ".samples_per_second", text);
      std::from_chars(text.data(), text.data() + text.size(), group.samples_per_second);
      out.groups.push_back(std::move(group));
    }
  out.shard_region = first_region;
  take(root, "data.region", out.shard_region);
  take(root, "data.up", out.shard_up);
  take(root, "data.down", out.shard_down);
  take(root, "data.replicas", out.shards);
  take(root, "workload.kind", out.workload);
  take(root, "workload.parameters", out.parameters);
  take(root, "training.method", out.method);
  take(root, "training.epochs", out.epochs);
  take(root, "training.target_batch", out.target_batch);
  // run.yaml leaves out codecs that have their default.
  out.compression = "none";
  take(root, "averaging.compression", out.compression);
  out.means_compression = out.compression;
  take(root, "averaging.means_compression", out.means_compression);
  take(root, "record.metrics_interval", out.metrics_interval);
  text.clear();
  take(root, "record.events", text);
  out.records_events = text != "none";
  text.clear();
  take(root, "record.transfers", text);
  out.records_transfers = text != "0";
  take(root, "record.transfers", out.most_transfers);
  if (auto made_by = provenance_of(parsed)) out.made_by = std::move(*made_by);
  return out;
}

} // namespace shoal::scenarios
