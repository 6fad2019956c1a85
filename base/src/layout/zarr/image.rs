//! Metadata of OME-Zarr images in the attributes of their groups.

use super::group::ZarrVersion;
use serde_json::{Value, json};

/// Metadata of an image of three dimensions at several levels.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageMetadata {
    /// Symbol of the unit of length; axes are without a unit if it is not one of nm, um, mm, cm and m.
    pub unit: String,
    /// Levels, the finest first.
    pub levels: Vec<ImageLevel>,
}

/// Level of an image, whose pixels are means of those of the level before.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageLevel {
    /// Path of its array in the group.
    pub path: String,
    /// Distances of pixels along z, y and x.
    pub scale: [f64; 3],
    /// Position of the first pixel, if it is not that of the finest level.
    pub translation: Option<[f64; 3]>,
}

impl ImageMetadata {
    /// Returns the attributes of the group: of OME-Zarr 0.4 in Zarr 2, and of 0.5 in Zarr 3.
    pub fn attributes(&self, version: ZarrVersion) -> Value {
        let unit = match self.unit.as_str() {
            "nm" => Some("nanometer"),
            "um" => Some("micrometer"),
            "mm" => Some("millimeter"),
            "cm" => Some("centimeter"),
            "m" => Some("meter"),
            _ => None,
        };
        let axis = |name: &str| match unit {
            Some(unit) => json!({"name": name, "type": "space", "unit": unit}),
            None => json!({"name": name, "type": "space"}),
        };
        let level = |ImageLevel { path, scale, translation }: &ImageLevel| {
            let mut transformations = vec![json!({"type": "scale", "scale": scale})];
            transformations.extend(translation.map(|to| json!({"type": "translation", "translation": to})));
            json!({"path": path, "coordinateTransformations": transformations})
        };
        let datasets: Vec<_> = self.levels.iter().map(level).collect();
        let axes = [axis("z"), axis("y"), axis("x")];
        let mut image = json!({"name": "reconstruction", "axes": axes, "datasets": datasets, "type": "mean"});
        match version {
            ZarrVersion::V2 => {
                image["version"] = json!("0.4");
                json!({"multiscales": [image]})
            }
            ZarrVersion::V3 => json!({"ome": {"version": "0.5", "multiscales": [image]}}),
        }
    }
}

/// Returns the path of the finest level of the first image that the attributes of a group describe.
pub fn first_level(attributes: &Value) -> Option<&str> {
    let images = [&attributes["ome"]["multiscales"], &attributes["multiscales"]];
    images.iter().find_map(|images| images[0]["datasets"][0]["path"].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finest_level_is_found_again() {
        let level = |path: &str| ImageLevel { path: path.into(), scale: [1.0; 3], translation: None };
        let image = ImageMetadata { unit: "um".into(), levels: vec![level("fine"), level("coarse")] };
        for version in [ZarrVersion::V2, ZarrVersion::V3] {
            assert_eq!(first_level(&image.attributes(version)), Some("fine"));
        }
        assert_eq!(first_level(&json!({})), None);
    }
}
