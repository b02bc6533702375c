#include "process/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

namespace pif::mount {
namespace {

// For the kernel, or for who reads /etc/fstab: these have done their work, or mean nothing here.
constexpr std::array<std::string_view, 11> kForKernel = {"allow_other", "dev",     "nodev",   "suid", "nosuid", "exec",
                                                         "noexec",      "noatime", "dirsync", "sync", "async"};
constexpr std::array<std::string_view, 13> kForMount = {"rw",
                                                        "auto",
                                                        "noauto",
                                                        "user",
                                                        "users",
                                                        "nouser",
                                                        "group",
                                                        "owner",
                                                        "nofail",
                                                        "_netdev",
                                                        "defaults",
                                                        "relatime",
                                                        "default_permissions"};

template <typename Number>
Status number_of(std::string_view word, std::string_view text, Number least, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc() && end == text.data() + text.size() && out >= least) return {};
  return fail(Code::kInvalid, fmt::format("-o {}={}: this is no number of {} or more", word, text, least));
}

Status bytes_of(std::string_view word, std::string_view text, std::uint64_t& out) {
  unsigned shift = 0;
  const std::string_view units = "KMGT";
  if (!text.empty() && units.find(text.back()) != std::string_view::npos) {
    shift = 10 * static_cast<unsigned>(units.find(text.back()) + 1);
    text.remove_suffix(1);
  }
  PIF_TRY(number_of<std::uint64_t>(word, text, 0, out));
  if (out > UINT64_MAX >> shift) return fail(Code::kInvalid, fmt::format("-o {}: too large a number", word));
  out <<= shift;
  return {};
}

Status add_word(std::string_view word, MountOptions& options) {
  const std::size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  if (word == "ro") {
    options.read_only = true;
    options.for_kernel.emplace_back(word);
  } else if (word == "lazy") {
    options.lazy = true;
  } else if (std::ranges::count(kForKernel, word) > 0) {
    options.for_kernel.emplace_back(word);
  } else if (name == "attr_timeout") {
    PIF_TRY(number_of<double>(name, value, 0, options.attr_timeout));
  } else if (name == "rewrite_max") {
    PIF_TRY(bytes_of(name, value, options.rewrite_max));
  } else if (!word.empty() && std::ranges::count(kForMount, word) == 0 && !word.starts_with("x-") &&
             !word.starts_with("comment=")) {
    return fail(Code::kInvalid, fmt::format("-o {}: there is no such option (see `pif mount --help`)", word));
  }
  return {};
}

}  // namespace

ConnectOptions connect_options(const MountOptions& options) {
  ConnectOptions out;
  out.where = options.where;
  out.threads = 1;  // several clients are at work at once
  out.program = "pif-mount";
  return out;
}

Status add_mount_words(const std::string& list, MountOptions& options) {
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    PIF_TRY(add_word(std::string_view(list).substr(at, end - at), options));
    at = end + 1;
  }
  return {};
}

}  // namespace pif::mount
