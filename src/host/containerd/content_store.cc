#include "host/containerd/content_store.h"

#include "host/containerd/content.grpc.pb.h"
#include "host/containerd/images.grpc.pb.h"
#include "host/containerd/leases.grpc.pb.h"

#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>

namespace spillway::host {
namespace {

namespace content = ::containerd::services::content::v1;
namespace images = ::containerd::services::images::v1;
namespace leases = ::containerd::services::leases::v1;

constexpr int kStoredAnswerBytesMax = 16 << 20;

Error store_error(std::string_view call, const grpc::Status& status) {
  const bool away = status.error_code() == grpc::StatusCode::UNAVAILABLE;
  const bool late = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  return {away   ? ErrorCode::kServiceUnavailable
          : late ? ErrorCode::kTimeout
                 : ErrorCode::kInvalid,
          fmt::format("{}: {}", call, status.error_message()),
          {}};
}

bool is_there_already(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::ALREADY_EXISTS;
}

}  // namespace

struct ContentStore::Impl {
  explicit Impl(const std::string& path) : socket(path) {
    gpr_set_log_function([](gpr_log_func_args*) {});  // every status is reported by us
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kStoredAnswerBytesMax);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    const auto channel = grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments);
    blobs = content::Content::NewStub(channel);
    names = images::Images::NewStub(channel);
    keepers = leases::Leases::NewStub(channel);
  }

  void prepare(grpc::ClientContext& context) const {
    const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(kCallMax).count();
    context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(millis, GPR_TIMESPAN)));
    context.AddMetadata("containerd-namespace", std::string(kCriNamespace));
    if (!lease.empty()) context.AddMetadata("containerd-lease", lease);
  }

  Error failed(std::string_view call, const grpc::Status& status) const {
    Error error = store_error(call, status);
    error.at = socket;
    return error;
  }

  std::string socket;
  std::string lease;  // empty: none is held
  std::unique_ptr<content::Content::Stub> blobs;
  std::unique_ptr<images::Images::Stub> names;
  std::unique_ptr<leases::Leases::Stub> keepers;
};

ContentStore::ContentStore(const std::string& socket) : impl_(std::make_unique<Impl>(socket)) {}

ContentStore::~ContentStore() {
  release_lease();
}

Outcome ContentStore::take_lease(const std::string& id, const std::string& end) {
  grpc::ClientContext context;
  impl_->prepare(context);
  leases::CreateRequest request;
  request.set_id(id);
  (*request.mutable_labels())["containerd.io/gc.expire"] = end;
  leases::CreateResponse answer;
  const grpc::Status status = impl_->keepers->Create(&context, request, &answer);
  if (!status.ok() && !is_there_already(status)) return impl_->failed("lease", status);
  impl_->lease = id;
  return {};
}

void ContentStore::release_lease() {
  if (impl_->lease.empty()) return;
  leases::DeleteRequest request;
  request.set_id(impl_->lease);
  impl_->lease.clear();
  grpc::ClientContext context;
  impl_->prepare(context);
  leases::Deleted answer;
  impl_->keepers->Delete(&context, request, &answer);  // a lease that is not deleted expires by itself
}

Outcome ContentStore::write(const StoredBlob& blob, const Read& read) {
  grpc::ClientContext context;
  impl_->prepare(context);
  const auto stream = impl_->blobs->Write(&context);
  content::WriteContentResponse answer;
  std::uint64_t offset = 0;
  std::optional<Error> broken;
  bool goes_on = true;
  while (goes_on) {
    auto bytes = read(offset, kChunkBytes);
    if (bytes && bytes->empty() && offset < blob.size_bytes)
      bytes = invalid(blob.digest, "it ends after {} of {} bytes", offset, blob.size_bytes);
    if (!bytes) {
      broken = bytes.error();
      context.TryCancel();
      break;
    }
    content::WriteContentRequest request;
    request.set_ref("spillway-" + blob.digest);
    request.set_total(static_cast<std::int64_t>(blob.size_bytes));
    request.set_expected(blob.digest);
    request.set_offset(static_cast<std::int64_t>(offset));
    offset += bytes->size();
    request.set_data(*std::move(bytes));
    const bool last = offset >= blob.size_bytes;
    request.set_action(last ? content::COMMIT : content::WRITE);
    if (last)
      for (const auto& [key, value] : blob.labels) (*request.mutable_labels())[key] = value;
    goes_on = stream->Write(request) && stream->Read(&answer) && !last;
  }
  if (!broken) stream->WritesDone();
  while (!broken && stream->Read(&answer)) continue;
  const grpc::Status status = stream->Finish();
  if (broken) return *broken;
  if (!status.ok() && !is_there_already(status)) return impl_->failed(blob.digest, status);
  return {};
}

Outcome ContentStore::name_image(const std::string& name, const StoredBlob& target) {
  images::Image image;
  image.set_name(name);
  image.mutable_target()->set_media_type(target.media_type);
  image.mutable_target()->set_digest(target.digest);
  image.mutable_target()->set_size(static_cast<std::int64_t>(target.size_bytes));
  grpc::ClientContext context;
  impl_->prepare(context);
  images::CreateImageRequest request;
  *request.mutable_image() = image;
  images::CreateImageResponse answer;
  const grpc::Status made = impl_->names->Create(&context, request, &answer);
  if (made.ok()) return {};
  if (!is_there_already(made)) return impl_->failed(name, made);
  grpc::ClientContext again;
  impl_->prepare(again);
  images::UpdateImageRequest change;
  *change.mutable_image() = image;
  images::UpdateImageResponse changed;
  const grpc::Status updated = impl_->names->Update(&again, change, &changed);
  if (!updated.ok()) return impl_->failed(name, updated);
  return {};
}

Outcome store_image(ContentStore& store, const OciImage& image) {
  const auto write = [&store](const OciBlob& blob, std::vector<std::pair<std::string, std::string>> labels) {
    const auto read = [&blob](std::uint64_t offset, std::size_t bytes_max) {
      return Result<std::string>(blob.bytes.substr(std::min<std::size_t>(offset, blob.bytes.size()), bytes_max));
    };
    return store.write({blob.media_type, blob.digest, blob.bytes.size(), std::move(labels)}, read);
  };
  SPILLWAY_TRY_VOID(write(image.layer, {}));
  SPILLWAY_TRY_VOID(write(image.config, {}));
  SPILLWAY_TRY_VOID(write(image.manifest, references_of(image)));
  return store.name_image(image.name,
                          {image.manifest.media_type, image.manifest.digest, image.manifest.bytes.size(), {}});
}

}  // namespace spillway::host
