#include "scenarios/promote/deployment.hpp"

#include "kernels/base/check.hpp"
#include "netem/wire/address.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::scenarios {

namespace {

bool all_of(std::string_view text, std::string_view more) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           more.find(c) != std::string_view::npos;
  });
}

} // namespace

result<deployment> deployment_of(const scenario& what, const inventory& on) {
  deployment out;
  out.name = word_of(what.name);
  out.detection_seconds = to_seconds(what.network.detection_time);
  for (const bool shards : {true, false})
    for (const auto& [name, host] : on.hosts) {
      if (host.shard != shards) continue;
      deployed_host made;
      made.name = name;
      made.shard = host.shard;
      made.address = host.address;
      if (!host.address.empty()) {
        const auto at = netem::wire::parse_address(host.address);
        if (!at) return failure{fmt::format("{}: address: {}", name, at.error())};
        if (!all_of(at->host, ".-:_"))
          return failure{fmt::format("{}: address: '{}' is no host", name, at->host)};
        made.host = at->host;
        made.port = std::to_string(at->port);
      }
      const auto colon = host.ssh.rfind(':');
      made.ssh = host.ssh.empty() ? made.host : host.ssh.substr(0, colon);
      made.ssh_port =
          host.ssh.empty() || colon == std::string::npos ? "22" : host.ssh.substr(colon + 1);
      if (!made.ssh.empty() &&
          (!all_of(made.ssh, ".-@_") || made.ssh.starts_with('-') || !all_of(made.ssh_port, "")))
        return failure{fmt::format("{}: ssh: '{}' is not [user@]host[:port]", name, host.ssh)};
      out.hosts.push_back(std::move(made));
    }
  if (meeting_points(out).empty())
    return failure{"no host has an address: one that others can dial is needed"};
  return out;
}

std::vector<std::string> meeting_points(const deployment& all) {
  std::vector<std::string> out;
  for (const auto& host : all.hosts)
    if (!host.address.empty() && out.size() < 3) out.push_back(host.address);
  return out;
}

std::string node_options_of(const deployment& all, const deployed_host& host) {
  std::string out = "--name " + host.name;
  out += host.address.empty()
             ? " --outbound-only"
             : fmt::format(" --listen 0.0.0.0:{} --advertise {}", host.port, host.address);
  for (const auto& other : meeting_points(all)) out += " --join " + other;
  if (all.pace) out += " --pace";
  return out;
}

std::string filled(std::string_view text,
                   std::initializer_list<std::pair<std::string_view, std::string>> values) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto found = std::find_if(values.begin(), values.end(), [&](const auto& each) {
      const auto key = each.first;
      return text[at] == '@' && text.substr(at + 1).starts_with(key) &&
             text.substr(at + 1 + key.size()).starts_with('@');
    });
    if (found == values.end()) {
      out += text[at++];
      continue;
    }
    out += found->second;
    at += found->first.size() + 2;
  }
  return out;
}

std::string word_of(const std::string& name) {
  std::string out;
  for (char c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (plain)
      out += c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (out.ends_with('-')) out.pop_back();
  return out.empty() ? "swarm" : out.substr(0, 40);
}

std::string shell_word(const std::string& text) {
  if (all_of(text, "/.-_:=+,@%")) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

} // namespace shoal::scenarios
