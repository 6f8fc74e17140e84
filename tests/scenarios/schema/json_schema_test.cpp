// The JSON Schema says what the reader says. A validator of other authors judges each document,
// and so does the reader.
#include "scenarios/schema/document.hpp"
#include "scenarios/schema/json_schema.hpp"
#include "scenarios/schema/reader.hpp"
#include "tests/scenarios/schema/files.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include <charconv>
#include <cstdlib>
#include <functional>
#include <map>
#include <regex>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;
using nlohmann::json;

namespace {

node_ptr scalar(const std::string& text) {
  auto made = std::make_shared<node>();
  made->kind = node_kind::scalar;
  made->text = text;
  return made;
}

/// A plain scalar as YAML 1.2 resolves it.
json resolved(const std::string& text) {
  static const std::regex whole("0|[1-9][0-9]*"), negative("-[1-9][0-9]{0,17}"),
      real("-?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][-+]?[0-9]+)?");
  if (text == "true" || text == "false") return text == "true";
  std::uint64_t count = 0;
  if (std::regex_match(text, whole) &&
      std::from_chars(text.data(), text.data() + text.size(), count).ec == std::errc{})
    return count;
  if (std::regex_match(text, negative)) return std::stoll(text);
  if (std::regex_match(text, real)) return std::stod(text);
  return text;
}

json as_json(const node& value) {
  switch (value.kind) {
  case node_kind::null:
    return nullptr;
  case node_kind::scalar:
    return resolved(value.text);
  case node_kind::sequence: {
    json out = json::array();
    for (const auto& item : value.items) out.push_back(as_json(*item));
    return out;
  }
  case node_kind::mapping: {
    json out = json::object();
    for (const auto& item : value.entries) out[item.key] = as_json(*item.value);
    return out;
  }
  }
  return {};
}

/// A copy whose nodes have positions of their own, in the order of a walk. The `at`-th node is
/// changed by `change`; nodes behind it keep their numbers.
struct copier {
  std::size_t at = 0;
  std::function<void(node&)> change{};
  int next = 0;
  std::map<int, std::string> scalars{}; // texts by line

  node_ptr copy(const node& value) {
    const int mine = next++;
    auto made = std::make_shared<node>(value);
    made->where = {-1, mine + 1, 1, 1};
    for (auto& item : made->items) item = copy(*item);
    for (auto& item : made->entries) {
      item.where = made->where;
      item.value = copy(*item.value);
    }
    if (change && static_cast<std::size_t>(mine) == at) change(*made);
    if (made->kind == node_kind::scalar) scalars[mine + 1] = made->text;
    return made;
  }
};

/// The limits of quantities and percentages are beyond a schema, and so is a fraction of a count.
bool schema_is_silent(const problem& what, const std::map<int, std::string>& scalars) {
  const auto found = scalars.find(what.where.line);
  if (found == scalars.end() || found->second.empty()) return false;
  const char last = found->second.back();
  const bool has_unit = last == '%' || (last >= 'a' && last <= 'z') || (last >= 'A' && last <= 'Z');
  for (const char* limit : {"has to be", "is too long", "is finer than", "whole number of bytes"})
    if (has_unit && what.message.find(limit) != std::string::npos) return true;
  return false;
}

class judge {
public:
  /// Writes one case: the document, and whether the reader accepts it.
  void add(const std::string& name, const node& root, copier how = {}) {
    const auto document = how.copy(root);
    scenario ignored;
    source_map sources;
    std::vector<problem> problems;
    read_scenario(*document, ignored, sources, problems);
    bool fine = true, silent = false;
    std::string said;
    for (const auto& each : problems)
      if (!each.warning) {
        if (schema_is_silent(each, how.scalars))
          silent = true;
        else
          fine = false;
        said += each.message + "; ";
      }
    if (fine && silent) return; // only the reader can tell
    (fine ? accepted : refused)++;
    cases += json{{"name", name}, {"document", as_json(*document)}, {"fine", fine}, {"said", said}}
                 .dump() +
             "\n";
  }

  std::string cases;
  std::size_t accepted = 0, refused = 0;
};

std::size_t size_of(const node& root) {
  copier all;
  all.copy(root);
  return static_cast<std::size_t>(all.next);
}

using change = std::pair<const char*, std::function<void(node&)>>;

std::vector<change> changes() {
  std::vector<change> out;
  for (const char* text : {"nonsense", "-1", "0", "7", "0.25", "true", "3 Mbit", "20%", "5ms",
                           "-5%", "64KiB", "8x8", "8x4", "median", "1e30"})
    out.emplace_back(text, [text](node& value) {
      value.kind = node_kind::scalar;
      value.text = text;
    });
  out.emplace_back("nothing", [](node& value) {
    value.kind = node_kind::null;
    value.items.clear();
    value.entries.clear();
  });
  out.emplace_back("an empty list", [](node& value) {
    value.kind = node_kind::sequence;
    value.items.clear();
  });
  out.emplace_back("an empty mapping", [](node& value) {
    value.kind = node_kind::mapping;
    value.entries.clear();
  });
  out.emplace_back("without its first key", [](node& value) {
    if (!value.entries.empty()) value.entries.erase(value.entries.begin());
  });
  for (const char* key : {"nonsense", "kind", "kill", "heads", "local_steps"})
    out.emplace_back(key, [key](node& value) {
      if (value.kind != node_kind::mapping || value.find(key) != nullptr) return;
      value.entries.push_back({key, value.where, scalar("1")});
    });
  return out;
}

} // namespace

TEST_CASE("the schema and the reader accept and refuse the same scenarios") {
  judge cases;
  const auto document_of = [](const std::filesystem::path& file) {
    auto parsed = parse_document(read_file(file));
    const bool usable =
        parsed.problems.empty() && parsed.root && parsed.root->kind == node_kind::mapping;
    return usable ? parsed.root : nullptr;
  };
  std::vector<std::filesystem::path> files = yaml_files("tests/scenarios/valid");
  for (const auto& file : yaml_files("tests/scenarios/invalid")) files.push_back(file);
  for (const auto& item : std::filesystem::recursive_directory_iterator("scenarios"))
    if (item.path().extension() == ".yaml") files.push_back(item.path());
  std::sort(files.begin(), files.end());
  const auto all = changes();
  std::size_t turn = 0;
  for (const auto& file : files) {
    const auto root = document_of(file);
    if (!root) continue;
    cases.add(file.string(), *root);
    if (file.string().find("invalid") != std::string::npos) continue;
    // The changes take turns, so that each one meets many kinds of nodes.
    const std::size_t step = file.string().starts_with("tests") ? 1 : 4;
    for (std::size_t at = 1; at < size_of(*root); at += step) {
      const auto& [what, how] = all[turn++ % all.size()];
      cases.add(fmt::format("{}, node {}: {}", file.string(), at, what), *root, {at, how});
    }
  }
  INFO(cases.accepted << " accepted and " << cases.refused << " refused");
  CHECK(cases.accepted > 300);
  CHECK(cases.refused > 300);

  scratch_folder here;
  write_file(here.path / "schema.json", json_schema());
  write_file(here.path / "cases.jsonl", cases.cases);
  const auto command =
      fmt::format("tests/scenarios/schema/validate_cases '{0}/schema.json' '{0}/cases.jsonl'",
                  here.path.string());
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) SHOAL_SKIP("Debian's python3-jsonschema is not installed");
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("the schema describes each option with its default and the options of each kind") {
  const auto schema = json::parse(json_schema());
  const auto& count = schema["properties"]["peers"]["additionalProperties"]["properties"]["count"];
  CHECK(count["type"] == "integer");
  CHECK(count["maximum"] == 4'000'000);
  CHECK(count["description"].get<std::string>().starts_with("number of hosts"));
  CHECK(schema["properties"]["stop_time"]["pattern"] ==
        "^(?=[0.]*[1-9])[0-9]+(\\.[0-9]+)? *(m|ns|us|ms|s|min|h|d)$");
  const auto& workload = schema["properties"]["workload"];
  std::map<std::string, json> kinds;
  for (const auto& each : workload["allOf"])
    kinds[each["if"]["properties"]["kind"]["const"]] = each["then"]["properties"];
  REQUIRE(kinds.contains("timing"));
  CHECK(kinds["timing"]["parameters"].is_object());
  CHECK(kinds["timing"]["layers"] == false); // an option of another kind
}
