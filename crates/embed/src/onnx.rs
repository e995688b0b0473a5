//! Reading an ONNX file so that the model takes little memory and time.

use std::fs::File;

use rten::{Model, ModelOptions};
use rten_onnx::onnx::{
    DataLocation, GraphProto, ModelProto, NodeProto, StringStringEntryProto, TensorProto,
};

/// Weights of fewer bytes stay in the description of the graph.
const SMALL: usize = 64 * 1024;
/// Reads a model.
///
/// The inference library computes at once what depends on weights alone. For the table of word pieces that would make half of
/// all memory: 30,000 rows of 32-bit numbers, of which a text needs some. So rows are looked up before they are converted.
///
/// # Errors
/// What is wrong with the file.
pub(crate) fn load(file: File, mut options: ModelOptions) -> Result<Model, String> {
    let mut model = ModelProto::parse_file(file).map_err(|error| error.to_string())?;
    if let Some(graph) = &mut model.graph {
        look_up_first(graph);
        // Quantised numbers between the layers: the matrices are read in another order at each text, which takes most of the
        // time, unless a copy in that order is kept. Other files would need too much memory for it.
        options.prepack_weights(graph.node.iter().any(|node| is(node, "MatMulInteger")));
        for (number, tensor) in graph.initializer.iter_mut().enumerate() {
            hand_over(tensor, number, &mut options);
        }
    }
    let description = model.write_buf().map_err(|error| error.to_string())?;
    drop(model);
    options.load(description).map_err(|error| error.to_string())
}

/// Gives the numbers of a tensor to the library as they are, instead of a copy within the description.
fn hand_over(tensor: &mut TensorProto, number: usize, options: &mut ModelOptions) {
    if tensor.raw_data.as_ref().is_none_or(|data| data.borrow().len() < SMALL) {
        return;
    }
    let Some(data) = tensor.raw_data.take() else { return };
    let data = data.into_inner();
    let name = format!("{number}.data");
    let entry = |key: &str, value: String| StringStringEntryProto {
        key: Some(key.to_owned()),
        value: Some(value),
    };
    tensor.data_location = Some(DataLocation::EXTERNAL);
    tensor.external_data = vec![
        entry("location", name.clone()),
        entry("offset", "0".to_owned()),
        entry("length", data.len().to_string()),
    ];
    options.external_data(&name, data);
}

/// Where a table is converted as a whole and then some of its rows are looked up, looks them up first.
fn look_up_first(graph: &mut GraphProto) {
    for gather in 0..graph.node.len() {
        let Some(conversions) = conversions_before(graph, gather) else { continue };
        let (Some(last), Some(first)) = (conversions.first(), conversions.last()) else { continue };
        let nodes = &mut graph.node;
        // The names of the values go on by one place: what was the converted table are now the rows of the table.
        let table = nodes[first.node].input[first.input].clone();
        let rows = nodes[gather].input[0].clone();
        let result = nodes[gather].output[0].clone();
        nodes[gather].input[0] = table;
        nodes[gather].output[0].clone_from(&rows);
        nodes[first.node].input[first.input].clone_from(&rows);
        nodes[last.node].output[0] = result;
        let mut changed = vec![rows];
        for Conversion { node, factors, .. } in &conversions {
            changed.push(nodes[*node].output[0].clone());
            // Each row has a factor of its own.
            if let Some(factors) = *factors {
                let mut lookup = nodes[gather].clone();
                let name = format!("{}_rows", nodes[*node].input[factors]);
                lookup.name = None;
                lookup.input[0] = std::mem::replace(&mut nodes[*node].input[factors], name.clone());
                lookup.output[0] = name;
                nodes.push(lookup);
            }
        }
        let has_shape = |name: &str| changed.iter().all(|changed| changed != name);
        graph.value_info.retain(|value| has_shape(value.name.as_deref().unwrap_or_default()));
    }
}

/// A change of each number of a table by itself.
struct Conversion {
    node: usize,
    /// Which input is converted.
    input: usize,
    /// Which input has one number for each row, if one has.
    factors: Option<usize>,
}

/// The conversions of the table of a lookup, the last one first. `None` if the node is no lookup of rows, or there are none.
fn conversions_before(graph: &GraphProto, gather: usize) -> Option<Vec<Conversion>> {
    let lookup = &graph.node[gather];
    let is_of_rows = lookup.attribute.iter().all(|it| it.i.unwrap_or_default() == 0);
    let [table, _] = lookup.input.as_slice() else { return None };
    if !is(lookup, "Gather") || !is_of_rows || lookup.output.len() != 1 {
        return None;
    }
    let tensor = |name: &str| graph.initializer.iter().find(|it| it.name.as_deref() == Some(name));
    let mut found: Vec<Conversion> = Vec::new();
    let mut name = table;
    let table = loop {
        if let Some(table) = tensor(name) {
            break table;
        }
        let uses = graph.node.iter().flat_map(|node| &node.input).filter(|input| *input == name);
        let is_result = graph.output.iter().any(|it| it.name.as_ref() == Some(name));
        if uses.count() != 1 || is_result {
            return None;
        }
        let node = graph.node.iter().position(|it| it.output.as_slice() == [name.as_str()])?;
        // The other inputs are looked at below, when the size of the table is known.
        let input = match graph.node[node].input.as_slice() {
            [_] if is(&graph.node[node], "Cast") => 0,
            [left, _] if is(&graph.node[node], "Mul") => usize::from(tensor(left).is_some()),
            [_, _] | [_, _, _] if is(&graph.node[node], "DequantizeLinear") => 0,
            _ => return None,
        };
        found.push(Conversion { node, input, factors: None });
        name = &graph.node[node].input[input];
    };
    for Conversion { node, input, factors } in &mut found {
        let node = &graph.node[*node];
        for (at, name) in node.input.iter().enumerate().filter(|(at, _)| at != input) {
            let dims = tensor(name)?.dims.as_slice();
            if is(node, "Mul") && table.dims.len() == 2 && dims == [table.dims[0], 1] {
                *factors = Some(at);
            } else if dims.iter().any(|&length| length != 1) {
                return None;
            }
        }
    }
    (!found.is_empty()).then_some(found)
}

fn is(node: &NodeProto, kind: &str) -> bool {
    node.domain.as_deref().unwrap_or_default().is_empty() && node.op_type.as_deref() == Some(kind)
}

#[cfg(test)]
mod tests;
