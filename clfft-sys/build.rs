//! With the feature `linked` the library is named to the linker; `CLFFT_LIB_DIR` says where it is, if not in a system
//! directory.

fn main() {
    println!("cargo:rerun-if-env-changed=CLFFT_LIB_DIR");
    if std::env::var_os("CARGO_FEATURE_LINKED").is_none() {
        return;
    }
    if let Some(directory) = std::env::var_os("CLFFT_LIB_DIR") {
        println!("cargo:rustc-link-search=native={}", directory.to_string_lossy());
    }
    println!("cargo:rustc-link-lib=dylib=clFFT");
}
