#include "description.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

// As headers and without exceptions: no library to find at run time, and errors stay values.
#undef TOML_HEADER_ONLY
#undef TOML_SHARED_LIB
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <toml++/toml.h>
#pragma GCC diagnostic pop

#include "pif/base/limits.h"

namespace pif::cluster {
namespace {

constexpr std::array<std::pair<TcpMode, std::string_view>, 3> kTcpModes{{
    {TcpMode::kNone, "none"},
    {TcpMode::kCurve, "curve"},
    {TcpMode::kInsecureLoopback, "insecure-loopback"},
}};

// Reads the keys of one table of pif.toml, and says which line is wrong.
class Reader {
 public:
  Reader(const std::string& path, const toml::table& table) : path_(path), table_(table) {}

  tl::unexpected<Error> refuse(std::string_view key, std::string_view what) const {
    const toml::node* node = table_.get(key);
    const auto line = (node != nullptr ? *node : static_cast<const toml::node&>(table_)).source().begin.line;
    return fail(Code::kInvalid, fmt::format("{}, line {}: {} {}", path_, line, key, what));
  }

  Result<std::int64_t> integer(std::string_view key, std::int64_t lowest, std::int64_t highest) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return refuse(key, "is missing");
    const auto* value = node->as_integer();
    if (value == nullptr || value->get() < lowest || value->get() > highest)
      return refuse(key, fmt::format("must be a whole number from {} to {}", lowest, highest));
    return value->get();
  }

  Result<std::string> text(std::string_view key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return refuse(key, "is missing");
    const auto* value = node->as_string();
    if (value == nullptr || value->get().empty() || value->get().find('\0') != std::string::npos)
      return refuse(key, "must be a string that is not empty");
    return value->get();
  }

  // A word that was mistyped must not pass for one that was left out.
  Status only(const std::set<std::string_view>& known) const {
    for (const auto& [key, node] : table_)
      if (known.count(key.str()) == 0) return refuse(key.str(), "is not a key of this format");
    return {};
  }

 private:
  const std::string& path_;
  const toml::table& table_;
};

bool is_name(std::string_view name) {
  const auto is_allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; };
  return !name.empty() && name.size() <= kDaemonNameMax && std::all_of(name.begin(), name.end(), is_allowed);
}

Result<LfsEntry> read_lfs(const std::string& folder, const Reader& in) {
  PIF_TRY(in.only({"id", "name", "root"}));
  LfsEntry lfs;
  PIF_TRY_VALUE(const std::int64_t id, in.integer("id", 1, 0xffffffff));
  lfs.id = static_cast<std::uint32_t>(id);
  PIF_TRY_VALUE(lfs.name, in.text("name"));
  if (!is_name(lfs.name) || lfs.name == "server")
    return in.refuse("name", fmt::format("must be 1 to {} of a-z, 0-9, - and _, and not \"server\"", kDaemonNameMax));
  PIF_TRY_VALUE(lfs.root, in.text("root"));
  if (lfs.root[0] != '/') lfs.root = folder + "/" + lfs.root;
  return lfs;
}

Status read_lfss(const std::string& folder, const std::string& path, const toml::table& table, Cluster& cluster) {
  const Reader top(path, table);
  const toml::node* node = table.get("lfs");
  if (node == nullptr || !node->is_array() || node->as_array()->empty())
    return top.refuse("lfs", "is missing: one [[lfs]] is needed for each LFS");
  if (node->as_array()->size() > kWidthMax) return top.refuse("lfs", fmt::format("is given more than {} times", kWidthMax));
  std::set<std::uint32_t> ids;
  std::set<std::string> names, roots;
  for (const toml::node& element : *node->as_array()) {
    if (!element.is_table()) return top.refuse("lfs", "must be tables: [[lfs]]");
    const Reader in(path, *element.as_table());
    PIF_TRY_VALUE(LfsEntry lfs, read_lfs(folder, in));
    if (!ids.insert(lfs.id).second) return in.refuse("id", fmt::format("{} is given to another LFS too", lfs.id));
    if (!names.insert(lfs.name).second) return in.refuse("name", fmt::format("{} is given to another LFS too", lfs.name));
    if (!roots.insert(lfs.root).second) return in.refuse("root", fmt::format("{} is given to another LFS too", lfs.root));
    cluster.lfss.push_back(std::move(lfs));
  }
  return {};
}

Status check_format(const std::string& path, const Reader& in) {
  PIF_TRY_VALUE(const std::int64_t format, in.integer("format", 1, INT64_MAX));
  if (format > kFormatVersion)
    return fail(Code::kVersion, fmt::format("{} has format {}, and this program knows formats up to {}: use a newer one", path,
                                            format, kFormatVersion));
  return {};
}

Result<TcpMode> read_tcp(const Reader& in) {
  PIF_TRY_VALUE(const std::string name, in.text("tcp"));
  for (const auto& [mode, text] : kTcpModes)
    if (name == text) return mode;
  return in.refuse("tcp", "must be \"none\", \"curve\" or \"insecure-loopback\"");
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\u{:04x}", byte);
    else
      out += c;
  }
  return out + '"';
}

}  // namespace

Status check_bevy(std::size_t lfs_count, std::uint32_t bevy) {
  if (bevy == 0) return {};
  if (bevy == 1) return fail(Code::kInvalid, "a bevy needs at least 2 LFSs, not 1");
  if (std::uint64_t{bevy} * 2 > lfs_count)
    return fail(Code::kInvalid, fmt::format("bevies of {} need at least {} LFSs (one bevy and its companion), and there are {}",
                                            bevy, std::uint64_t{bevy} * 2, lfs_count));
  return {};
}

std::string format_description(const Cluster& cluster) {
  const auto mode = std::find_if(kTcpModes.begin(), kTcpModes.end(), [&](const auto& m) { return m.first == cluster.tcp; });
  std::string out = fmt::format(
      "# This folder is a PIF file system; this file says what it consists of. `pif up` reads it.\n"
      "format = {}\n"
      "id = {}   # of this file system; every LFS root and the server's directory bear it too\n"
      "bevy = {}   # LFSs in a bevy of files made without --bevy; 0: no parity\n"
      "tcp = \"{}\"   # none, curve, or insecure-loopback (plain, on 127.0.0.1 only)\n",
      kFormatVersion, quoted(cluster.id), cluster.bevy, mode->second);
  const std::string inside = cluster.folder + "/";
  for (const LfsEntry& lfs : cluster.lfss) {
    const bool is_inside = lfs.root.size() > inside.size() && lfs.root.compare(0, inside.size(), inside) == 0;
    out += fmt::format("\n[[lfs]]\nid = {}\nname = {}\nroot = {}\n", lfs.id, quoted(lfs.name),
                       quoted(is_inside ? lfs.root.substr(inside.size()) : lfs.root));
  }
  return out;
}

Result<Cluster> parse_description(const std::string& folder, std::string_view text) {
  const std::string path = folder + "/pif.toml";
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed)
    return fail(Code::kInvalid, fmt::format("{}, line {}: {}", path, parsed.error().source().begin.line,
                                            std::string_view(parsed.error().description())));
  const toml::table& table = parsed.table();
  const Reader in(path, table);
  PIF_TRY(check_format(path, in));
  PIF_TRY(in.only({"format", "id", "bevy", "tcp", "lfs"}));
  Cluster cluster;
  cluster.folder = folder;
  PIF_TRY_VALUE(cluster.id, in.text("id"));
  if (cluster.id.size() != 16 || cluster.id.find_first_not_of("0123456789abcdef") != std::string::npos)
    return in.refuse("id", "must be 16 hexadecimal digits, 0-9 and a-f");
  PIF_TRY_VALUE(const std::int64_t bevy, in.integer("bevy", 0, kWidthMax));
  cluster.bevy = static_cast<std::uint32_t>(bevy);
  PIF_TRY_VALUE(cluster.tcp, read_tcp(in));
  PIF_TRY(read_lfss(folder, path, table, cluster));
  if (const Status fits = check_bevy(cluster.lfss.size(), cluster.bevy); !fits)
    return in.refuse("bevy", "does not fit: " + fits.error().text);
  return cluster;
}

}  // namespace pif::cluster
