#include "files/copy_forks.h"

#include "files/copy_file.h"
#include "names/entries.h"
#include "pif/base/fork.h"

namespace pif::cli {
namespace {

Status copy_fork(Client& client, const File& source, const File& copy, const Entry& entry) {
  PIF_TRY_VALUE(const ForkName fork, parse_fork(entry.name));
  const std::string name(fork.name);
  PIF_TRY_VALUE(File from, client.open_fork(source, fork.subfile, name, Client::Mode::kHold));
  PIF_TRY_VALUE(const FileLength file_length, from.file_length());
  CreateOptions create;
  create.format = from.format();
  create.mode = entry.mode & 0777;  // a copy gives nobody its owner's rights
  create.attributes = from.attributes();
  PIF_TRY_VALUE(File to, client.create_fork(copy, fork.subfile, name, create));
  PIF_TRY(copy_records(from, to, file_length.records));
  return to.commit();
}

}  // namespace

Status copy_forks(Client& client, const File& source, const File& copy) {
  return for_each_entry([&](const std::string& after) { return client.list_forks(source, after); },
                        [&](const Entry& entry) { return copy_fork(client, source, copy, entry); });
}

Result<bool> has_forks(Client& client, const File& file) {
  PIF_TRY_VALUE(const ListPage page, client.list_forks(file, {}, 1));
  return !page.entries.empty();
}

Result<bool> is_fork(Client& client, const std::string& path) {
  if (!may_be_fork(path)) return false;
  const std::string subfile = path.substr(0, path.rfind('/'));
  const auto entry = client.stat(subfile.substr(0, subfile.rfind('/')));
  if (entry) return entry->kind == EntryKind::kFile;
  if (entry.error().code == Code::kNotFound || entry.error().code == Code::kNotDirectory) return false;
  return fail(entry.error());
}

}  // namespace pif::cli
