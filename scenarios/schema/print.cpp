// Writes the resolved scenario as YAML: every option with its value, in the order of describe().
#include "scenarios/schema/inventory.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/schema/values.hpp"

#include <map>

namespace shoal::scenarios {
namespace {

/// The default value of each option of a struct, as text.
struct defaults {
  std::map<std::string, std::string> text;

  template <class T>
  void field(const char* key, T& value, const char*, const rule& = {}) {
    if constexpr (requires { written(value); }) text[key] = written(value);
  }
  void keyed(const char*, std::vector<peer_group>&, const char*) {}
  void kind(const char* key, choice& value, kind_list, const char*, const rule& = {}) {
    text[key] = value.name();
  }
  void program(choice&, kind_list) {}
  void action(fault&) {}
};

class printer {
public:
  printer(std::string& out, std::size_t indent, defaults known)
      : out_(out), indent_(indent), defaults_(std::move(known)) {}

  template <class S>
  static void print(std::string& out, std::size_t indent, const S& value) {
    S fresh = fresh_of(value), copy = value; // describe() takes mutable members, for the reader
    defaults known;
    describe(known, fresh);
    printer inner(out, indent, std::move(known));
    if constexpr (std::is_same_v<S, scenario>) inner.program_ = &value.program;
    describe(inner, copy);
  }

  template <class T>
  void field(const char* key, T& value, const char*, const rule& r = {}) {
    if (program_ != nullptr && !program_->reads(key)) return;
    if constexpr (requires { written(value); }) {
      const std::string text = written(value);
      if (r.hide_default && text == defaults_.text[key]) return;
      if (text != "\"\"") line(key, text);
    } else if constexpr (requires { value.has_value(); }) {
      if (!value) return;
      if constexpr (requires { written(*value); }) {
        line(key, written(*value));
      } else {
        line(key, "");
        print(out_, indent_ + 2, *value);
      }
    } else if constexpr (requires { value.push_back({}); }) {
      if (value.empty()) return;
      line(key, "");
      for (auto& item : value) {
        const std::size_t start = out_.size();
        print(out_, indent_ + 4, item);
        if (out_.size() > start) out_[start + indent_ + 2] = '-';
      }
    } else if constexpr (requires { value.find(""); }) {
      if (value.empty()) return;
      line(key, "");
      for (auto& entry : value) // clang 14 rejects a structured binding in a requirement
        if constexpr (requires { written(entry.second); })
          out_ += std::string(indent_ + 2, ' ') + quoted(entry.first) + ": " +
                  written(entry.second) + "\n";
        else
          nested(entry.first, entry.second);
    } else {
      if (r.hide_default && value == fresh_of(value)) return;
      line(key, "");
      print(out_, indent_ + 2, value);
    }
  }

  void keyed(const char* key, std::vector<peer_group>& groups, const char*) {
    if (program_ != nullptr && !program_->reads(key)) return;
    line(key, groups.empty() ? "{}" : "");
    for (const peer_group& group : groups) nested(group.name, group);
  }

  void kind(const char* key, choice& value, kind_list, const char*, const rule& r = {}) {
    if (!r.hide_default || value.name() != defaults_.text[key]) line(key, value.name());
    print(out_, indent_, value.options);
  }

  void program(choice& value, kind_list) {
    if (value.options == options_box{}) return;
    line(value.name().c_str(), "");
    print(out_, indent_ + 2, value.options);
  }

  void action(fault& what) {
    with_action_value(what, [&](auto& value) { line(name_of(what.kind), name_of(value)); });
  }

private:
  template <class S>
  void nested(const std::string& name, const S& item) {
    out_ += std::string(indent_ + 2, ' ') + quoted(name) + ":\n";
    print(out_, indent_ + 4, item);
  }

  void line(const char* key, const std::string& text) {
    out_ += std::string(indent_, ' ') + key + (text.empty() ? ":" : ": ") + text + "\n";
  }

  std::string& out_;
  std::size_t indent_;
  defaults defaults_;
  const program_choice* program_ = nullptr; // program of the scenario; the printer omits sections
                                            // that this program does not read
};

} // namespace

std::string quoted(const std::string& text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
  };
  const auto harmless = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '*';
  };
  bool plain =
      !text.empty() && letter(text.front()) && text != "null" && text != "Null" && text != "NULL";
  for (char c : text) plain = plain && harmless(c);
  if (plain) return text;
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (byte < 0x20 || byte == 0x7F)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string to_yaml(const inventory& what) {
  std::string out;
  printer::print(out, 0, what);
  return out;
}

std::string to_yaml(const scenario& what) {
  std::string out;
  printer::print(out, 0, what);
  return out;
}

} // namespace shoal::scenarios
