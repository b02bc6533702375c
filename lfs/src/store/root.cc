#include "store/root.h"

#include <charconv>

#include <fmt/format.h>

#include "pif/base/limits.h"
#include "store/catalogue.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kIdentityBytesMax = 4096;

std::string identity_path(const std::string& root) { return root + "/lfs.toml"; }

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

bool parse_number(std::string_view text, std::uint32_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_string(std::string_view text, std::string& out) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return false;
  out = text.substr(1, text.size() - 2);
  return true;
}

bool parse_line(std::string_view line, RootIdentity& out, std::uint32_t& format) {
  const auto equals = line.find('=');
  if (equals == std::string_view::npos) return false;
  const auto key = trimmed(line.substr(0, equals));
  const auto value = trimmed(line.substr(equals + 1));
  if (key == "format") return parse_number(value, format);
  if (key == "node") return parse_number(value, out.node);
  if (key == "cluster") return parse_string(value, out.cluster);
  if (key == "name") return parse_string(value, out.name);
  if (key == "uuid") return parse_string(value, out.uuid);
  return false;
}

Result<std::string> read_text(component::Storage& storage, const std::string& path) {
  PIF_TRY_VALUE(auto file, storage.open(path, component::OpenMode::kRead));
  std::string text(kIdentityBytesMax, '\0');
  PIF_TRY_VALUE(const auto size, file->read(0, std::as_writable_bytes(std::span(text))));
  text.resize(size);
  return text;
}

Status write_identity(component::Storage& storage, const std::string& root, const RootIdentity& ours) {
  const auto path = identity_path(root);
  const auto text = fmt::format(
      "# A local file system of PIF. Everything else under this folder belongs to it.\n"
      "format = {}\ncluster = \"{}\"\nnode = {}\nname = \"{}\"\nuuid = \"{}\"\n",
      kRootFormat, ours.cluster, ours.node, ours.name, ours.uuid);
  {
    PIF_TRY_VALUE(auto file, storage.open(path + ".new", component::OpenMode::kCreate));
    PIF_TRY(file->resize(0));
    PIF_TRY(file->write(0, std::as_bytes(std::span(text))));
    PIF_TRY(file->sync());
  }
  PIF_TRY(storage.rename(path + ".new", path));
  return storage.sync_folder(root);
}

// What the daemon's start may have left in a folder that is none yet.
Status check_empty(component::Storage& storage, const std::string& root) {
  PIF_TRY_VALUE(const auto names, storage.list(root));
  for (const std::string& name : names) {
    const bool is_ours =
        name == "lock" || name == "used-by" || name == "catalogue" || name.ends_with(".log") || name == "lfs.toml.new";
    if (!is_ours)
      return fail(
          Code::kExists,
          fmt::format("{} is to become the root of an LFS, and has {} in it: give an empty folder", root, name));
  }
  return {};
}

struct Found {
  RootIdentity identity;
  std::uint32_t format = 0;
};

Result<Found> read_any(component::Storage& storage, const std::string& root) {
  const auto path = identity_path(root);
  PIF_TRY_VALUE(const auto text, read_text(storage, path));
  Found out;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto line = trimmed(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
    if (line.empty() || line.front() == '#') continue;
    // A newer format may have lines that this program does not know: its version counts first.
    if (!parse_line(line, out.identity, out.format) && out.format <= kRootFormat)
      return fail(Code::kInvalid, fmt::format("{}, line {}: cannot read \"{}\"", path, number + 1, line));
  }
  if (out.format > kRootFormat)
    return fail(Code::kVersion,
                fmt::format("{} has format {}, this program knows {}: use a newer one", path, out.format, kRootFormat));
  if (out.format == 0 || out.identity.cluster.empty() || out.identity.node == 0)
    return fail(Code::kInvalid, fmt::format("{} lacks format, cluster or node", path));
  return out;
}

Status check_ours(const std::string& root, const RootIdentity& found, const RootIdentity& ours) {
  if (found.cluster != ours.cluster || found.node != ours.node)
    return fail(Code::kInvalid,
                fmt::format("{} belongs to node {} of file system {}, not to node {} of {}: is the right disk mounted?",
                            root, found.node, found.cluster, ours.node, ours.cluster));
  if (ours.uuid.empty() || found.uuid == ours.uuid) return {};
  return fail(Code::kInvalid, fmt::format("{} is the root {}, and pif.toml says {}: is the right disk mounted?", root,
                                          found.uuid, ours.uuid));
}

Status make_folders(component::Storage& storage, const std::string& root) {
  for (const auto& folder : {data_folder(root), scratch_folder(root), log_folder(root)})
    PIF_TRY(storage.make_folder(folder));
  PIF_TRY(storage.sync_folder(data_folder(root)));  // a folder in it may have been made just before the power failed
  return storage.sync_folder(root);
}

// The catalogue of a root that is being made: new, or begun by an earlier try.
Status begin_catalogue(kv::Store& catalogue, const std::string& root, const RootIdentity& ours) {
  PIF_TRY_VALUE(const auto version, catalogue::version(catalogue));
  if (version == 0) {
    PIF_TRY_VALUE(auto transaction, catalogue.read());
    PIF_TRY_VALUE(const auto count, transaction->count(0));
    if (count > 0)
      return fail(Code::kCorrupt,
                  fmt::format("{} is missing, but the catalogue has {} components", identity_path(root), count));
    transaction.reset();
    return catalogue::begin(catalogue, ours.uuid);
  }
  PIF_TRY_VALUE(const auto numbers, catalogue::numbers(catalogue));
  if (numbers.uuid() == ours.uuid && numbers.incarnation() == 0) return {};
  return fail(Code::kCorrupt,
              fmt::format("{} is missing, but there is a catalogue in use: restore it", identity_path(root)));
}

}  // namespace

Result<RootIdentity> read_identity(component::Storage& storage, const std::string& root) {
  PIF_TRY_VALUE(auto found, read_any(storage, root));
  if (found.format > kFormatBefore) return std::move(found.identity);
  return fail(Code::kVersion, fmt::format("{} has format {}, this program knows {}: run `pif up`, which takes it over",
                                          identity_path(root), found.format, kRootFormat));
}

Status make_root(component::Storage& storage, kv::Store& catalogue, const std::string& root, const RootIdentity& ours) {
  PIF_TRY(storage.make_folder(root));
  auto found = read_identity(storage, root);
  if (!found && found.error().code != Code::kNotFound) return fail(std::move(found.error()));
  if (found) return check_ours(root, *found, ours);
  PIF_TRY(check_empty(storage, root));
  PIF_TRY(begin_catalogue(catalogue, root, ours));
  const auto parent = root.substr(0, root.rfind('/'));
  PIF_TRY(storage.sync_folder(parent.empty() ? "/" : parent));
  return write_identity(storage, root, ours);  // the daemon makes the folders in it
}

Status adopt_root(component::Storage& storage, kv::Store& catalogue, const std::string& root,
                  const RootIdentity& ours) {
  auto found = read_any(storage, root);
  if (!found && found.error().code == Code::kNotFound)
    return fail(Code::kNotFound, fmt::format("{} is missing: is the disk mounted?", identity_path(root)));
  if (!found) return fail(std::move(found.error()));
  if (found->format > kFormatBefore) return check_ours(root, found->identity, ours);
  found->identity.uuid = ours.uuid;
  PIF_TRY(check_ours(root, found->identity, ours));
  PIF_TRY_VALUE(const auto version, catalogue::version(catalogue));
  if (version == 0)
    return fail(Code::kCorrupt, fmt::format("{} has an empty catalogue, though it is not new: restore it", root));
  if (version == kFormatBefore) PIF_TRY(catalogue::begin(catalogue, ours.uuid));
  return write_identity(storage, root, ours);
}

Status claim_root(component::Storage& storage, kv::Store& catalogue, const std::string& root,
                  const RootIdentity& ours) {
  auto found = read_identity(storage, root);
  if (!found && found.error().code == Code::kNotFound)
    return fail(Code::kNotFound, fmt::format("{} is missing: is the disk mounted?", identity_path(root)));
  if (!found) return fail(std::move(found.error()));
  PIF_TRY(check_ours(root, *found, ours));
  PIF_TRY(catalogue::check_version(catalogue));
  PIF_TRY_VALUE(const auto numbers, catalogue::numbers(catalogue));
  if (numbers.uuid() != found->uuid)
    return fail(Code::kCorrupt,
                fmt::format("the catalogue of {} belongs to the root {}, not to {}: restore the right one", root,
                            numbers.uuid(), found->uuid));
  PIF_TRY(raise_root(storage, catalogue, root));
  return make_folders(storage, root);
}

Status raise_root(component::Storage& storage, kv::Store& catalogue, const std::string& root) {
  PIF_TRY_VALUE(const auto found, read_any(storage, root));
  if (found.format < kRootFormat) PIF_TRY(write_identity(storage, root, found.identity));
  PIF_TRY_VALUE(const auto version, catalogue::version(catalogue));
  return version < kRootFormat ? catalogue::raise(catalogue) : Status();
}

Status each_data_file(component::Storage& storage, const std::string& root,
                      const std::function<Status(const std::string&, const std::string&)>& visit) {
  PIF_TRY_VALUE(const auto folders, storage.list(data_folder(root)));
  for (const auto& folder : folders) {
    const auto path = data_folder(root) + "/" + folder;
    PIF_TRY_VALUE(const auto names, storage.list(path));
    for (const auto& name : names) PIF_TRY(visit(path, name));
  }
  return {};
}

}  // namespace pif::lfs
