#include "kernels/learn/torch_loader.hpp"

#include "kernels/base/program_file.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace shoal::learn {

namespace {

struct torch_module {
  decltype(&shoal_make_transformer_math) make = nullptr;
  decltype(&shoal_make_albert_math) make_albert = nullptr;
  decltype(&shoal_make_dalle_math) make_dalle = nullptr;
  decltype(&shoal_use_one_thread) use_one_thread = nullptr;
  std::string error;
};

std::atomic<bool> in_use{false};

/// Beside the program, where the build puts it, or where an installation does.
torch_module load() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path here = program_file().parent_path();
  const char* name = "libshoal_torch.so";
  torch_module out;
  for (const auto& path : {here / name, here.parent_path() / "lib" / "shoal" / name}) {
    if (!fs::exists(path, error)) continue;
    choose_loops();
    void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (!handle) {
      out.error = std::string("libtorch cannot be loaded: ") + dlerror();
      return out;
    }
    out.make = reinterpret_cast<decltype(out.make)>(dlsym(handle, "shoal_make_transformer_math"));
    out.make_albert =
        reinterpret_cast<decltype(out.make_albert)>(dlsym(handle, "shoal_make_albert_math"));
    out.make_dalle =
        reinterpret_cast<decltype(out.make_dalle)>(dlsym(handle, "shoal_make_dalle_math"));
    out.use_one_thread =
        reinterpret_cast<decltype(out.use_one_thread)>(dlsym(handle, "shoal_use_one_thread"));
    in_use = out.make && out.make_albert && out.make_dalle && out.use_one_thread;
    if (!in_use) out.error = path.string() + " is of another version of Shoal";
    return out;
  }
  out.error = std::string(name) + ", which calls libtorch, is neither in " + here.string() +
              " nor in " + (here.parent_path() / "lib" / "shoal").string() +
              "; it belongs to the program and goes where that goes";
  return out;
}

const torch_module& module() {
  static const torch_module loaded = load();
  return loaded;
}

const torch_module& needed_module() {
  if (!module().error.empty()) throw std::runtime_error(module().error);
  return module();
}

} // namespace

void choose_loops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    setenv("OPENBLAS_CORETYPE", "Haswell", 0);
#endif
}

result<void> load_torch() {
  if (!module().error.empty()) return failure{module().error};
  return {};
}

void use_one_thread() {
  if (in_use) module().use_one_thread();
}

std::shared_ptr<const transformer_math> make_transformer_math(const transformer_shape& shape) {
  return std::shared_ptr<const transformer_math>(needed_module().make(shape));
}

std::shared_ptr<const albert_math> make_albert_math(const albert_shape& shape) {
  return std::shared_ptr<const albert_math>(needed_module().make_albert(shape));
}

std::shared_ptr<const dalle_math> make_dalle_math(const dalle_shape& shape) {
  return std::shared_ptr<const dalle_math>(needed_module().make_dalle(shape));
}

} // namespace shoal::learn
