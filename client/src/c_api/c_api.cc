// The C interface: handles around Client and File, and errors as negative codes.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "c_api/c_run.h"
#include "c_api/c_values.h"
#include "pif/client/rewrite.h"

using pif::Client;
using pif::File;
using pif::Result;
using pif::Status;

using namespace pif::c_api;

namespace {

pif::ConnectOptions options_of(const char* where, const pif_options* options) {
  pif::ConnectOptions out;
  if (where != nullptr) out.where = where;
  if (options == nullptr) return out;
  if (options->route != nullptr) out.route = options->route;
  out.data_path = static_cast<pif::DataPath>(options->data_path);
  if (options->timeout_ms != 0) out.timeout = std::chrono::milliseconds(options->timeout_ms);
  if (options->threads != 0) out.threads = options->threads;
  return out;
}

uint64_t microseconds(pif::Duration duration) { return static_cast<uint64_t>(duration.count() / 1000); }

// What fits `out` of the next records; the position moves behind them.
Result<uint64_t> read_batch(File& file, std::span<std::byte> out, uint32_t* lengths, uint64_t count) {
  PIF_TRY_VALUE(const pif::RecordBatch batch, file.read_batch_at(file.position(), count, out.size()));
  if (batch.data.size() > out.size()) {
    return pif::fail(pif::Code::kTooLarge, "the next record needs " + std::to_string(batch.data.size()) + " bytes");
  }
  if (!batch.data.empty()) std::memcpy(out.data(), batch.data.data(), batch.data.size());
  std::copy(batch.lengths.begin(), batch.lengths.end(), lengths);
  PIF_TRY(file.seek(file.position() + batch.lengths.size()));
  return batch.lengths.size();
}

Status read_many(File& file, std::span<pif_read_request> requests) {
  std::vector<File::ReadRequest> all(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    pif_read_request& request = requests[i];
    request.done = 0;
    PIF_TRY(check({{"out", request.out, request.out_bytes}}));
    all[i] = {request.first, request.count, bytes_of(request.out, request.out_bytes), 0};
  }
  PIF_TRY(file.read_many(all));
  for (size_t i = 0; i < requests.size(); ++i) requests[i].done = all[i].done;
  return {};
}

Status each_operation(const Client& client, pif_stats_function each, void* user) {
  for (const pif::OperationStats& from : client.stats()) {
    pif_operation_stats to{};
    to.name = from.name.c_str();
    to.count = from.count;
    to.errors = from.errors;
    to.bytes_received = from.bytes_in;
    to.bytes_sent = from.bytes_out;
    to.total_us = microseconds(from.total);
    to.p50_us = microseconds(from.latency.percentile(50));
    to.p99_us = microseconds(from.latency.percentile(99));
    to.max_us = microseconds(from.longest);
    if (each(user, &to) != 0) break;
  }
  return {};
}

}  // namespace

extern "C" {

pif_connection* pif_connect(const char* where, const pif_options* options) {
  pif_connection* made = nullptr;
  pif_errors of_memory;
  run(of_memory, {}, [&]() -> Status {
    made = new pif_connection;
    return {};
  });
  if (made == nullptr) return nullptr;
  run(*made->errors, {}, [&]() -> Status {
    PIF_TRY_VALUE(Client client, Client::connect(options_of(where, options)));
    made->client = std::make_unique<Client>(std::move(client));
    return {};
  });
  return made;
}

void pif_disconnect(pif_connection* connection) { delete connection; }
int pif_error(const pif_connection* connection) {
  return connection == nullptr ? PIF_E_INVALID : connection->errors->code;
}
const char* pif_error_text(const pif_connection* connection) {
  return connection == nullptr ? "NULL was given for \"connection\"" : connection->errors->text.c_str();
}
const char* pif_code_name(int code) {
  return pif::code_name(static_cast<pif::Code>(code)).data();  // names are literals, and so end with a zero
}

int pif_stats(const pif_connection* connection, pif_stats_function each, void* user) {
  if (connection == nullptr) return -PIF_E_INVALID;
  return static_cast<int>(run(*connection->errors, {{"each", each}}, [&]() -> Status {
    return connection->client ? each_operation(*connection->client, each, user) : Status();
  }));
}

int pif_on_wait(pif_connection* connection, pif_wait_function function, void* user) {
  return with_client(connection, {}, [&](Client& client) -> Status {
    std::function<bool()> wants_to_stop;
    if (function != nullptr) wants_to_stop = [=] { return function(user) != 0; };
    connection->errors->wants_to_stop = wants_to_stop;
    client.on_wait(std::move(wants_to_stop));
    return {};
  });
}

int pif_mkdir(pif_connection* connection, const char* path, int parents) {
  return with_client(connection, {{"path", path}},
                     [&](Client& client) { return client.make_folder(path, parents != 0); });
}
int pif_mkdir_mode(pif_connection* connection, const char* path, int parents, uint32_t mode) {
  return with_client(connection, {{"path", path}},
                     [&](Client& client) { return client.make_folder(path, parents != 0, mode); });
}
int pif_chmod(pif_connection* connection, const char* path, uint32_t mode) {
  pif::AttributeChange change;
  change.mode = mode;
  return with_client(connection, {{"path", path}},
                     [&](Client& client) { return client.change_attributes(path, change); });
}
int pif_chown(pif_connection* connection, const char* path, uint32_t owner, uint32_t group) {
  pif::AttributeChange change;
  if (owner != PIF_KEEP) change.owner = owner;
  if (group != PIF_KEEP) change.group = group;
  return with_client(connection, {{"path", path}},
                     [&](Client& client) { return client.change_attributes(path, change); });
}
int pif_remove(pif_connection* connection, const char* path, int recursive) {
  return with_client(connection, {{"path", path}}, [&](Client& client) { return client.remove(path, recursive != 0); });
}
int pif_rename(pif_connection* connection, const char* from, const char* to, int no_replace) {
  return with_client(connection, {{"from", from}, {"to", to}},
                     [&](Client& client) { return client.rename(from, to, no_replace != 0); });
}
int pif_stat(pif_connection* connection, const char* path, pif_stat_info* info) {
  return with_client(connection, {{"path", path}, {"info", info}}, [&](Client& client) -> Status {
    PIF_TRY_VALUE(const pif::Entry entry, client.stat(path));
    *info = info_of(entry);
    return {};
  });
}
int pif_attributes_of(pif_connection* connection, const char* path, pif_attribute_function each, void* user) {
  return with_client(connection, {{"path", path}, {"each", each}}, [&](Client& client) -> Status {
    PIF_TRY_VALUE(const pif::Entry entry, client.stat(path));
    return tell_attributes(entry.attributes, each, user);
  });
}
int pif_set_attributes(pif_connection* connection, const char* path, const pif_attribute_change* change) {
  return with_client(connection, {{"path", path}, {"change", change}},
                     [&](Client& client) { return client.change_attributes(path, change_of(*change)); });
}
int pif_list(pif_connection* connection, const char* path, pif_list_function each, void* user) {
  return with_client(connection, {{"path", path}, {"each", each}}, [&](Client& client) {
    return list_all([&](const std::string& after) { return client.list(path, after); }, each, user);
  });
}

pif_file* pif_create(pif_connection* connection, const char* path, const pif_create_options* options) {
  return make_file(connection, {{"path", path}}, [&](Client& client) -> Result<File> {
    PIF_TRY_VALUE(const auto chosen, options_of(options));
    return client.create(path, chosen);
  });
}
pif_file* pif_open(pif_connection* connection, const char* path, enum pif_mode mode) {
  return make_file(connection, {{"path", path}}, [&](Client& client) { return client.open(path, mode_of(mode)); });
}
int pif_commit(pif_file* file) {
  return code_with_file(file, {}, [](File& f) { return f.commit(); });
}
int pif_preallocate(pif_file* file, uint64_t bytes) {
  return code_with_file(file, {}, [&](File& f) { return f.preallocate(bytes); });
}
int pif_resize(pif_file* file, uint64_t bytes) {
  return code_with_file(file, {}, [&](File& f) { return pif::client::resize(*file->client, f, bytes); });
}
int pif_abort(pif_file* file) {
  return code_with_file(file, {}, [](File& f) { return f.abort(); });
}
int pif_close(pif_file* file) {
  const int code = code_with_file(file, {}, [](File& f) { return f.close(); });
  delete file;
  return code;
}

uint64_t pif_tell(const pif_file* file) { return file == nullptr ? 0 : file->file.position(); }
int pif_seek(pif_file* file, uint64_t record) {
  return code_with_file(file, {}, [&](File& f) { return f.seek(record); });
}
int pif_file_length(pif_file* file, uint64_t* records, uint64_t* bytes) {
  return code_with_file(file, {}, [&](File& f) -> Status {
    PIF_TRY_VALUE(const pif::FileLength file_length, f.file_length());
    if (records != nullptr) *records = file_length.records;
    if (bytes != nullptr) *bytes = file_length.bytes;
    return {};
  });
}
uint32_t pif_record_length(const pif_file* file) { return file == nullptr ? 0 : file->file.format().record_length; }

int64_t pif_read(pif_file* file, void* out, size_t out_bytes, uint64_t count) {
  return with_file(file, {{"out", out, out_bytes}}, [&](File& f) { return f.read(bytes_of(out, out_bytes), count); });
}
int64_t pif_read_at(pif_file* file, uint64_t first, void* out, size_t out_bytes, uint64_t count) {
  return with_file(file, {{"out", out, out_bytes}},
                   [&](File& f) { return f.read_at(first, bytes_of(out, out_bytes), count); });
}
int pif_read_many(pif_file* file, pif_read_request* requests, size_t count) {
  return code_with_file(file, {{"requests", requests, count}}, [&](File& f) {
    return read_many(f, {requests, count});
  });
}
int pif_write(pif_file* file, const void* in, size_t bytes) {
  return code_with_file(file, {{"in", in, bytes}}, [&](File& f) { return f.write(bytes_of(in, bytes)); });
}
int pif_write_at(pif_file* file, uint64_t first, const void* in, size_t bytes) {
  return code_with_file(file, {{"in", in, bytes}}, [&](File& f) { return f.write_at(first, bytes_of(in, bytes)); });
}
int64_t pif_append(pif_file* file, const void* in, size_t bytes) {
  return with_file(file, {{"in", in, bytes}}, [&](File& f) { return f.append(bytes_of(in, bytes)); });
}

int64_t pif_append_bytes(pif_file* file, const void* in, size_t bytes) {
  return with_file(file, {{"in", in, bytes}}, [&](File& f) { return f.append_bytes(bytes_of(in, bytes)); });
}

int64_t pif_read_batch(pif_file* file, void* out, size_t out_bytes, uint32_t* lengths, uint64_t count) {
  return with_file(file, {{"out", out, out_bytes}, {"lengths", lengths, count}},
                   [&](File& f) { return read_batch(f, bytes_of(out, out_bytes), lengths, count); });
}
int pif_write_batch(pif_file* file, const void* in, size_t bytes, const uint32_t* lengths, uint64_t count) {
  return code_with_file(file, {{"in", in, bytes}, {"lengths", lengths, count}}, [&](File& f) {
    return f.write_batch({lengths, count}, bytes_of(in, bytes));
  });
}
int64_t pif_append_batch(pif_file* file, const void* in, size_t bytes, const uint32_t* lengths, uint64_t count) {
  return with_file(file, {{"in", in, bytes}, {"lengths", lengths, count}}, [&](File& f) {
    return f.append_batch({lengths, count}, bytes_of(in, bytes));
  });
}

int64_t pif_start_read(pif_file* file, uint64_t first, void* out, size_t out_bytes, uint64_t count) {
  return with_file(file, {{"out", out, out_bytes}},
                   [&](File& f) { return f.start_read(first, bytes_of(out, out_bytes), count); });
}
int64_t pif_start_write(pif_file* file, uint64_t first, const void* in, size_t bytes) {
  return with_file(file, {{"in", in, bytes}}, [&](File& f) { return f.start_write(first, bytes_of(in, bytes)); });
}
int64_t pif_wait(pif_file* file, int64_t operation) {
  return with_file(file, {}, [&](File& f) { return f.wait(static_cast<File::Operation>(operation)); });
}
int pif_is_done(pif_file* file, int64_t operation) {
  return code_with_file(
      file, {}, [&](File& f) -> Result<int> { return f.is_done(static_cast<File::Operation>(operation)) ? 1 : 0; });
}

int64_t pif_pread(pif_file* file, void* out, size_t bytes, uint64_t offset) {
  return with_file(file, {{"out", out, bytes}}, [&](File& f) { return f.pread(bytes_of(out, bytes), offset); });
}
int64_t pif_pwrite(pif_file* file, const void* in, size_t bytes, uint64_t offset) {
  return with_file(file, {{"in", in, bytes}}, [&](File& f) { return f.pwrite(bytes_of(in, bytes), offset); });
}

}  // extern "C"
