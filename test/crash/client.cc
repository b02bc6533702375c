// A client that the crash tests drive: one operation a line on stdin, its answer on stdout as soon as it is known.
//
//   crash_client DIR [ROUTE [DATA]]
//
//   N put PATH FILE LENGTH RECORDS WIDTH     a new file of records of LENGTH bytes (0: variable), generation N
//   N append PATH FILE FIRST COUNT           records that must become FIRST, FIRST + 1, ...
//   N log PATH FILE COUNT                    the same, among other clients: records 0, 1, ... of the batch
//   N overwrite PATH FILE FIRST COUNT
//   N rename FROM TO     N remove PATH     N mkdir PATH
//   N dump PATH                              all names and records below PATH, through a connection of its own
//
// Answers: "N ok", "N fail CODE TEXT", for a dump lines "file PATH LENGTH [FILE:FIRST:GENERATION:COUNT]..." and
// "folder PATH" before it. After a failure the lines already sent are answered "N skipped" up to a line "go".
#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "pif/base/assert.h"
#include "pif/client/client.h"
#include "records.h"

namespace {

using namespace pif;
using namespace pif::crash;

std::uint32_t record_length(const Format& format) { return format.is_fixed() ? format.record_length : 0; }

class CrashClient {
 public:
  explicit CrashClient(ConnectOptions options) : options_(std::move(options)) {}

  Status perform(std::uint64_t number, const std::string& operation, std::istream& in) {
    PIF_TRY(connect());
    if (operation == "put") return put(number, in);
    if (operation == "append") return append(number, in);
    if (operation == "log") return log(number, in);
    if (operation == "overwrite") return overwrite(number, in);
    if (operation == "dump") return dump(in);
    return change_names(operation, in);
  }

 private:
  Status connect() {
    if (client_) return {};
    PIF_TRY_VALUE(client_, Client::connect(options_));
    return {};
  }

  Status change_names(const std::string& operation, std::istream& in) {
    std::string path, to;
    in >> path >> to;
    if (operation == "rename") return client_->rename(path, to);
    if (operation == "remove") return client_->remove(path);
    if (operation == "mkdir") return client_->make_folder(path);
    return fail(Code::kInvalid, "no operation " + operation);
  }

  Status put(std::uint64_t number, std::istream& in) {
    std::string path;
    std::uint64_t file_tag = 0, records = 0;
    std::uint32_t length = 0;
    CreateOptions create;
    in >> path >> file_tag >> length >> records >> create.width;
    create.format = length == 0 ? Format::variable() : Format::fixed(length);
    PIF_TRY_VALUE(File file, client_->create(path, create));
    const Batch batch = make_batch(file_tag, 0, records, number, length);
    if (records > 0) PIF_TRY(length == 0 ? file.write_batch(batch.lengths, batch.data) : file.write(batch.data));
    return file.commit();
  }

  Result<RecordNumber> append_to(File& file, std::uint64_t tag, std::uint64_t first, std::uint64_t count,
                                 std::uint64_t number) {
    const std::uint32_t length = record_length(file.format());
    const Batch batch = make_batch(tag, first, count, number, length);
    return length == 0 ? file.append_batch(batch.lengths, batch.data) : file.append(batch.data);
  }

  Status append(std::uint64_t number, std::istream& in) {
    std::string path;
    std::uint64_t tag = 0, first = 0, count = 0;
    in >> path >> tag >> first >> count;
    PIF_TRY_VALUE(File file, client_->open(path, Client::Mode::kWrite));
    PIF_TRY_VALUE(const RecordNumber at, append_to(file, tag, first, count, number));
    if (at != first) return fail(Code::kInternal, "appended at record " + std::to_string(at));
    return file.close();
  }

  // The file stays open: what a client keeps must survive the daemons it is kept at.
  Status log(std::uint64_t number, std::istream& in) {
    std::string path;
    std::uint64_t tag = 0, count = 0;
    in >> path >> tag >> count;
    auto at = logs_.find(path);
    if (at == logs_.end()) {
      logs_.clear();
      PIF_TRY_VALUE(File file, client_->open(path, Client::Mode::kWrite));
      at = logs_.emplace(path, std::move(file)).first;
    }
    const auto appended = append_to(at->second, tag, 0, count, number);
    if (!appended) return fail(appended.error());
    return {};
  }

  Status overwrite(std::uint64_t number, std::istream& in) {
    std::string path;
    std::uint64_t tag = 0, first = 0, count = 0;
    in >> path >> tag >> first >> count;
    PIF_TRY_VALUE(File file, client_->open(path, Client::Mode::kWrite));
    const std::uint32_t length = record_length(file.format());
    const Batch batch = make_batch(tag, first, count, number, length);
    PIF_TRY(length == 0 ? file.write_batch_at(first, batch.lengths, batch.data) : file.write_at(first, batch.data));
    return file.close();
  }

  // ---- what is there ----
  Status dump(std::istream& in) {
    std::string path;
    in >> path;
    client_.reset();
    PIF_TRY(connect());
    return dump_folder(path);
  }

  Status dump_folder(const std::string& path) {
    const std::string below = path == "/" ? path : path + "/";
    std::string after;
    for (bool more = true; more;) {
      PIF_TRY_VALUE(const ListPage page, client_->list(path, after));
      for (const Entry& entry : page.entries) PIF_TRY(dump_entry(below + entry.name, entry));
      more = page.more && !page.entries.empty();
      if (more) after = page.entries.back().name;
    }
    return {};
  }

  Status dump_entry(const std::string& path, const Entry& entry) {
    if (entry.kind == EntryKind::kFile) return dump_file(path);
    std::cout << "folder " << path << '\n';
    return dump_folder(path);
  }

  Status dump_file(const std::string& path) {
    PIF_TRY_VALUE(File file, client_->open(path));
    PIF_TRY_VALUE(const FileLength file_length, file.file_length());
    std::cout << "file " << path << ' ' << record_length(file.format());
    PIF_TRY(file.format().is_fixed() ? dump_fixed(file, file_length) : dump_variable(file, file_length));
    end_run();
    std::cout << '\n';
    return {};
  }

  Status dump_fixed(File& file, const FileLength& file_length) {
    const std::uint32_t length = file.format().record_length;
    std::vector<std::byte> bytes(file_length.records * length);
    PIF_TRY_VALUE(const std::uint64_t count, file.read(bytes, file_length.records));
    if (count != file_length.records) return fail(Code::kInternal, "fewer records than the file_length says");
    for (std::uint64_t i = 0; i < count; ++i) PIF_TRY(add_to_run(std::span(bytes).subspan(i * length, length)));
    return {};
  }

  Status dump_variable(File& file, const FileLength& file_length) {
    for (std::uint64_t done = 0; done < file_length.records;) {
      PIF_TRY_VALUE(const RecordBatch batch, file.read_batch(file_length.records - done));
      if (batch.lengths.empty()) return fail(Code::kInternal, "fewer records than the file_length says");
      std::size_t at = 0;
      for (const std::uint32_t length : batch.lengths) {
        PIF_TRY(add_to_run(std::span(batch.data).subspan(at, length)));
        at += length;
      }
      done += batch.lengths.size();
    }
    return {};
  }

  Status add_to_run(std::span<const std::byte> record) {
    const auto tag = tag_of(record);
    if (!tag) return fail(Code::kCorrupt, "a record that nobody wrote");
    const bool goes_on = run_count_ > 0 && tag->file == run_.file && tag->generation == run_.generation &&
                         tag->record == run_.record + run_count_;
    if (!goes_on) {
      end_run();
      run_ = *tag;
    }
    ++run_count_;
    return {};
  }

  void end_run() {
    if (run_count_ > 0)
      std::cout << ' ' << run_.file << ':' << run_.record << ':' << run_.generation << ':' << run_count_;
    run_count_ = 0;
  }

  ConnectOptions options_;
  std::optional<Client> client_;
  std::map<std::string, File> logs_;
  Tag run_;
  std::uint64_t run_count_ = 0;
};

void answer(const std::string& number, const Status& done) {
  std::cout << number;
  if (done) {
    std::cout << " ok";
  } else {
    std::cout << " fail " << code_name(done.error().code) << ' ' << done.error().to_string();
  }
  std::cout << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  set_assertion_handler(&end_process);  // not one more call that failed
  ConnectOptions options;
  options.where = argv[1];
  if (argc > 2) options.route = argv[2];
  if (argc > 3 && std::string(argv[3]) == "messages") options.data_path = DataPath::kMessages;
  CrashClient client(options);
  bool skipping = false;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string number, operation;
    in >> number >> operation;
    if (number == "go") {
      skipping = false;
      continue;
    }
    if (skipping) {
      std::cout << number << " skipped" << std::endl;
      continue;
    }
    const Status done = client.perform(std::strtoull(number.c_str(), nullptr, 10), operation, in);
    answer(number, done);
    skipping = !done;
  }
  return 0;
}
