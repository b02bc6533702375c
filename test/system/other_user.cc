// A client of another user than the daemons', on their machine:
//
//   other-user make PATH    makes a file that everybody may write, of one record
//   other-user use PATH     appends and overwrites more than a packet of a Unix socket holds, then reads it all by
//   message
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "pif/client/client.h"

namespace pif {
namespace {

constexpr std::uint32_t kRecordBytes = 1000;

std::vector<std::byte> records(std::size_t count, char letter) {
  return std::vector<std::byte>(count * kRecordBytes, static_cast<std::byte>(letter));
}

Status make(Client& client, const std::string& path) {
  CreateOptions options;
  options.format = Format::fixed(kRecordBytes);
  options.mode = 0666;
  PIF_TRY_VALUE(File file, client.create(path, options));
  PIF_TRY(file.write(records(1, 'a')));
  return file.commit();
}

Status use(Client& client, const std::string& path) {
  constexpr std::size_t kAppended = 2000, kOverwritten = 1000;
  PIF_TRY_VALUE(File file, client.open(path, Client::Mode::kWrite));
  PIF_TRY_VALUE(const RecordNumber first, file.append(records(kAppended, 'b')));
  PIF_TRY(file.write_at(first, records(kOverwritten, 'c')));
  std::vector<std::byte> wanted = records(1, 'a');
  for (const auto& part : {records(kOverwritten, 'c'), records(kAppended - kOverwritten, 'b')})
    wanted.insert(wanted.end(), part.begin(), part.end());
  std::vector<std::byte> got(wanted.size());
  PIF_TRY_VALUE(const std::uint64_t count, file.read_at(0, got, 1 + kAppended));
  if (count != 1 + kAppended || got != wanted) return fail(Code::kCorrupt, path + " is not what was written");
  return file.close();
}

Status run(const std::string& what, const std::string& path) {
  ConnectOptions options;
  options.data_path = DataPath::kMessages;
  PIF_TRY_VALUE(Client client, Client::connect(options));
  return what == "make" ? make(client, path) : use(client, path);
}

}  // namespace
}  // namespace pif

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const pif::Status done = pif::run(argv[1], argv[2]);
  if (!done) std::cerr << done.error().to_string() << '\n';
  return done ? 0 : 3;
}
