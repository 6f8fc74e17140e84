#include "scenarios/schema/check_churn.hpp"

#include "kernels/base/text_fields.hpp"
#include "scenarios/schema/check_scenario.hpp"
#include "scenarios/schema/checking.hpp"
#include "scenarios/schema/churn_traces.hpp"
#include "scenarios/schema/guess.hpp"
#include "scenarios/schema/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>

namespace shoal::scenarios {
namespace {

class churn_checker {
public:
  churn_checker(const scenario& what, const source_map& sources, const std::string& folder,
                std::vector<problem>& problems)
      : s_(what), sources_(sources), folder_(folder), problems_(problems) {}

  void run() {
    for (const peer_group& group : s_.peers) churn(group.churn, "peers." + group.name + ".churn");
    bool sound = true;
    for (const peer_group& group : s_.peers)
      for (const char* key : {"", ".churn", ".churn.trace", ".churn.format", ".churn.time_unit",
                              ".churn.match", ".count"})
        sound = sound && sources_.sound("peers." + group.name + key);
    if (!sound) return;
    for (const trace_use& use : trace_uses(s_, folder_)) check_trace(use);
  }

private:
  void error(const std::string& path, std::string message, std::vector<std::string> notes = {}) {
    problems_.push_back({sources_.value_at(path), std::move(message), std::move(notes)});
  }
  void error_at_key(const std::string& path, std::string message) {
    problems_.push_back({sources_.key_at(path), std::move(message), {}});
  }
  void warn(const std::string& path, std::string message) {
    problems_.push_back({sources_.value_at(path), std::move(message), {}, true});
  }
  bool sound(std::initializer_list<std::string> paths) const {
    return std::all_of(paths.begin(), paths.end(),
                       [&](const std::string& path) { return sources_.sound(path); });
  }
  /// Reports an error with the reason `why` for each key that the file gives.
  void refuse(const std::string& path, std::initializer_list<const char*> keys,
              const std::string& why) {
    for (const char* key : keys)
      if (sources_.given(path + "." + key))
        error_at_key(path + "." + key, fmt::format(fmt::runtime(why), fmt::arg("key", key)));
  }
  static bool ends(const lifetime_options& l) {
    return l.distribution != distribution_kind::always;
  }

  void churn(const churn_options& c, const std::string& path) {
    if (!sound({path, path + ".preset"})) return;
    span(c.session, path + ".session");
    span(c.gap, path + ".gap");
    span(c.outages.every, path + ".outages.every");
    span(c.outages.lasting, path + ".outages.lasting");
    if (!c.trace.empty()) {
      refuse(path, {"preset", "session", "gap", "stationary", "diurnal"},
             "a trace already says when hosts come and go");
      file(c.trace, path + ".trace");
    } else {
      refuse(path, {"format", "time_unit", "match", "offset", "speed", "loop"},
             "'{key}' needs a 'trace'");
      if (!ends(c.session) && sound({path + ".session", path + ".session.distribution"}))
        refuse(path, {"gap"}, "a gap needs a 'session' that ends");
      rhythm(c, path);
    }
    if (sound({path + ".outages"}) && sources_.given(path + ".outages")) {
      const bool every = sound({path + ".outages.every", path + ".outages.every.distribution"});
      const bool lasting =
          sound({path + ".outages.lasting", path + ".outages.lasting.distribution"});
      if (every && lasting && (!ends(c.outages.every) || !ends(c.outages.lasting)))
        error_at_key(
            path + ".outages",
            "outages need 'every' and 'lasting', each with a 'distribution' other than always");
    }
    if (!churns(c) && sound({path + ".session", path + ".outages"}))
      refuse(path, {"ending"}, "'ending' needs a 'session' that ends, or a 'trace'");
  }

  /// Checks the options that require sessions and gaps to end.
  void rhythm(const churn_options& c, const std::string& path) {
    if (!sound({path + ".session", path + ".gap", path + ".session.distribution",
                path + ".gap.distribution"}))
      return;
    if (c.stationary && (!ends(c.session) || !ends(c.gap)))
      error_at_key(path + ".stationary", "'stationary' needs a 'session' and a 'gap' that end");
    if (c.diurnal.amplitude > 0 && !ends(c.gap))
      error_at_key(path + ".diurnal", "'diurnal' needs a 'gap' that ends");
  }

  void file(const std::string& given, const std::string& path) {
    const std::string full = path_from(folder_, given);
    const auto files = trace_files(full);
    if (files.empty()) return error(path, fmt::format("no file matches '{}'", given));
    if (files.front() != full) return;
    std::error_code failed;
    const auto kind = std::filesystem::status(full, failed).type();
    if (!std::filesystem::exists(std::filesystem::file_status(kind)))
      error(path, no_such_file(given, folder_));
    else if (kind != std::filesystem::file_type::regular)
      error(path, fmt::format("'{}' is not a file", given));
  }

  void span(const lifetime_options& l, const std::string& path) {
    for (const char* key : {"", ".distribution", ".mean", ".median", ".scale", ".shape", ".sigma",
                            ".phases", ".at_most"})
      if (!sources_.sound(path + key)) return;
    using enum distribution_kind;
    const auto kind = l.distribution;
    const std::string name = name_of(kind);
    if (kind == always)
      return refuse(path, {"mean", "median", "scale", "shape", "sigma", "phases", "at_most"},
                    "'{key}' needs a 'distribution' other than always");
    if (kind != weibull && kind != gamma) {
      refuse(path, {"shape"}, "only the distributions weibull and gamma have a shape");
      refuse(path, {"scale"}, "only the distributions weibull and gamma have a scale");
    }
    if (kind != log_normal)
      refuse(path, {"median", "sigma"}, "only the distribution log_normal has a {key}");
    if (kind != hyperexponential)
      refuse(path, {"phases"}, "only the distribution hyperexponential has phases");
    else
      refuse(path, {"mean"}, "the phases of a hyperexponential say its mean");
    if (kind == hyperexponential) {
      if (l.phases.empty())
        error_at_key(path, fmt::format("{}: the distribution {} needs 'phases'", path, name));
      if (l.phases.size() > 100) error(path + ".phases", "at most 100 phases are possible");
      return;
    }
    const bool scaled = kind == weibull || kind == gamma;
    const duration other = scaled ? l.scale : kind == log_normal ? l.median : duration::zero();
    const char* other_key = scaled ? "scale" : "median";
    if (l.mean <= duration::zero() && other <= duration::zero())
      return error(path + ".mean",
                   fmt::format("{}: the distribution {} needs a 'mean'{} above 0s", path, name,
                               kind == exponential ? "" : fmt::format(" or a '{}'", other_key)));
    if (l.mean > duration::zero() && other > duration::zero())
      error_at_key(path + "." + other_key,
                   fmt::format("'mean' and '{}' both say how long it is: give one", other_key));
    if (kind == log_normal && l.sigma == 0)
      error_at_key(path, fmt::format("{}: the distribution log_normal needs a 'sigma'", path));
    if (l.at_most > duration::zero() && l.at_most < std::max(l.mean, l.median))
      error(path + ".at_most",
            fmt::format("at_most {} is less than the {} {}", to_string(l.at_most),
                        l.mean > duration::zero() ? "mean" : "median",
                        to_string(std::max(l.mean, l.median))));
  }

  /// Returns the group that has a host of this name, or null.
  static const peer_group* group_of(std::string_view host,
                                    const std::vector<const peer_group*>& among) {
    for (const peer_group* group : among) {
      if (std::find(group->names.begin(), group->names.end(), host) != group->names.end())
        return group;
      if (host.size() <= group->name.size() + 1 || !host.starts_with(group->name) ||
          host[group->name.size()] != '-')
        continue;
      const std::string_view digits = host.substr(group->name.size() + 1);
      const auto index = number_of<std::uint64_t>(digits);
      const bool canonical = digits.size() == 1 || digits.front() != '0';
      if (index && canonical && *index < group->count && *index >= group->names.size())
        return group;
    }
    return nullptr;
  }

  void check_trace(const trace_use& use) {
    const std::string path = "peers." + use.groups.front()->name + ".churn.trace";
    const position used = sources_.value_at(path);
    netem::trace_options how = use.how;
    if (use.by_name)
      how.known = [&](std::string_view host) { return group_of(host, use.groups) != nullptr; };
    std::vector<std::string> peers;
    bool fine = !use.files.empty(); // an empty list is reported at the group
    for (const std::string& file : use.files) {
      std::error_code failed;
      if (!std::filesystem::is_regular_file(file, failed)) return; // reported at the group
      std::ifstream in(file, std::ios::binary);
      if (!in)
        return problems_.push_back(
            {used, fmt::format("cannot be read: '{}'", use.groups.front()->churn.trace), {}});
      const netem::trace_result read =
          netem::read_trace_as(in, std::filesystem::path(file).stem().string(), how);
      for (const netem::trace_problem& what : read.problems) {
        problem made{used, what.message, {}, false, seen_from_here(file), {}, what.source_line};
        made.there = {-1, static_cast<int>(what.line), static_cast<int>(what.column),
                      static_cast<int>(what.length)};
        if (!what.unknown_peer.empty()) made.notes = about_peer(what.unknown_peer, use.groups);
        problems_.push_back(std::move(made));
      }
      fine = fine && read.problems.empty();
      for (const auto& peer : read.value.peers()) peers.push_back(peer.name);
    }
    if (!fine) return;
    if (use.files.size() > 1)
      if (const auto all = netem::load_traces(use.files, use.how); !all)
        return problems_.push_back({used, all.error(), {}});
    if (use.by_name)
      named(peers, use, path);
    else
      in_order(peers.size(), use, path);
  }

  void named(const std::vector<std::string>& peers, const trace_use& use, const std::string& path) {
    std::map<const peer_group*, std::uint64_t> count;
    for (const std::string& name : peers) {
      const peer_group* of = group_of(name, use.groups);
      if (of == nullptr) // the trace's format does not ask how.known
        return error(path,
                     fmt::format("the trace has the peer '{}', but no host is called so", name),
                     about_peer(name, use.groups));
      ++count[of];
    }
    for (const peer_group* group : use.groups)
      missing(*group, group->count - std::min(group->count, count[group]));
  }

  void in_order(std::uint64_t peers, const trace_use& use, const std::string& path) {
    std::uint64_t hosts = 0;
    std::string names;
    for (const peer_group* group : use.groups) {
      const std::uint64_t left = peers > hosts ? peers - hosts : 0;
      missing(*group, group->count - std::min(group->count, left));
      hosts += group->count;
      names += (names.empty() ? "'" : ", '") + group->name + "'";
    }
    if (peers > hosts)
      error(path,
            fmt::format("the trace has {} peers, and {} only {} host{}", peers, names, hosts,
                        hosts == 1 ? "" : "s"),
            {fmt::format("'count: {}' would do", use.groups.front()->count + peers - hosts)});
  }

  void missing(const peer_group& group, std::uint64_t count) {
    if (count > 0)
      warn("peers." + group.name + ".churn.trace",
           fmt::format("{} of the {} hosts of '{}' are not in the trace: they never start", count,
                       group.count, group.name));
  }

  std::vector<std::string> about_peer(const std::string& name,
                                      const std::vector<const peer_group*>& users) const {
    std::vector<const peer_group*> all;
    for (const peer_group& group : s_.peers) all.push_back(&group);
    if (const peer_group* other = group_of(name, all))
      return {fmt::format("the group '{}' does not use this trace", other->name)};
    std::vector<std::string> names;
    for (const peer_group* group : users)
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(group->count, 32); ++i)
        names.push_back(host_name(*group, i));
    auto notes = guess(name, names);
    if (!closest(name, names))
      notes.emplace_back("'match: order' gives the trace's peers to the hosts in order");
    return notes;
  }

  const scenario& s_;
  const source_map& sources_;
  const std::string& folder_;
  std::vector<problem>& problems_;
};

/// Copies the preset's numbers that `to` does not set. `to` has no distribution of its own.
void fill_lifetime(lifetime_options& to, const lifetime_options& from, const std::string& path,
                   const source_map& sources) {
  const auto given = [&](const char* key) { return sources.given(path + "." + key); };
  if (given("distribution")) return;
  to.distribution = from.distribution;
  if (!given("mean") && !given("median") && !given("scale") && !given("phases")) {
    to.mean = from.mean;
    to.median = from.median;
    to.scale = from.scale;
    to.phases = from.phases;
  }
  if (!given("shape")) to.shape = from.shape;
  if (!given("sigma")) to.sigma = from.sigma;
  if (!given("at_most")) to.at_most = from.at_most;
}

} // namespace

bool churns(const churn_options& what) {
  const auto ends = [](const lifetime_options& l) {
    return l.distribution != distribution_kind::always;
  };
  return !what.trace.empty() || ends(what.session) || ends(what.outages.every);
}

void fill_churn(peer_group& group, const source_map& sources) {
  churn_options& churn = group.churn;
  const churn_preset* preset = find_churn_preset(churn.preset);
  if (preset == nullptr || !churn.trace.empty()) return;
  const std::string path = "peers." + group.name + ".churn.";
  fill_lifetime(churn.session, preset->session, path + "session", sources);
  fill_lifetime(churn.gap, preset->gap, path + "gap", sources);
  if (!sources.given(path + "stationary")) churn.stationary = true;
}

void check_churn(const scenario& what, const source_map& sources, const std::string& folder,
                 std::vector<problem>& problems) {
  churn_checker(what, sources, folder, problems).run();
}

} // namespace shoal::scenarios
