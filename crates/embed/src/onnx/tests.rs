use std::cell::RefCell;
use std::io::{Seek as _, Write as _};

use rten::ModelOptions;
use rten_onnx::onnx::{
    AttributeProto, DataType, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    ValueInfoProto,
};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use super::{load, look_up_first};

fn node(kind: &str, inputs: &[&str], output: &str) -> NodeProto {
    let mut node = NodeProto { op_type: Some(kind.to_owned()), ..NodeProto::default() };
    node.input = inputs.iter().map(|name| (*name).to_owned()).collect();
    node.output = vec![output.to_owned()];
    if kind == "Cast" {
        let to = AttributeProto { name: Some("to".to_owned()), i: Some(1), ..Default::default() };
        node.attribute.push(to);
    }
    node
}

fn tensor(name: &str, dims: &[i64], kind: DataType, data: Vec<u8>) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        dims: dims.to_vec(),
        data_type: Some(kind),
        raw_data: Some(RefCell::new(data)),
        ..TensorProto::default()
    }
}

fn value(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.to_owned()), ..ValueInfoProto::default() }
}

/// A table of 3 rows of bytes, converted with the factors, of which the rows `numbers` are looked up.
fn graph(factors: &[i64]) -> GraphProto {
    let count = factors.iter().product::<i64>();
    let numbers = (1..=count).flat_map(|number| (number as f32).to_le_bytes()).collect();
    GraphProto {
        node: vec![
            node("Cast", &["table"], "cast"),
            node("Mul", &["factors", "cast"], "converted"),
            node("Gather", &["converted", "numbers"], "rows"),
        ],
        initializer: vec![
            tensor("table", &[3, 2], DataType::INT8, vec![1, 2, 3, 4, 5, 6]),
            tensor("factors", factors, DataType::FLOAT, numbers),
        ],
        input: vec![value("numbers")],
        output: vec![value("rows")],
        value_info: vec![value("cast"), value("converted"), value("rows"), value("other")],
    }
}

/// The nodes as `kind(inputs) output`, and the values with a known shape.
fn looked_up_first(mut graph: GraphProto) -> (Vec<String>, Vec<String>) {
    look_up_first(&mut graph);
    let line = |node: &NodeProto| {
        let kind = node.op_type.as_deref().unwrap();
        format!("{kind}({}) {}", node.input.join(" "), node.output.join(" "))
    };
    let shapes = graph.value_info.into_iter().map(|value| value.name.unwrap());
    (graph.node.iter().map(line).collect(), shapes.collect())
}

#[test]
fn rows_are_looked_up_before_they_are_converted() {
    let (nodes, shapes) = looked_up_first(graph(&[1]));
    let expected =
        ["Cast(converted) cast", "Mul(factors cast) rows", "Gather(table numbers) converted"];
    assert_eq!(nodes, expected);
    assert_eq!(shapes, ["other"]);
    let (nodes, _) = looked_up_first(graph(&[3, 1]));
    let expected = [
        "Cast(converted) cast",
        "Mul(factors_rows cast) rows",
        "Gather(table numbers) converted",
        "Gather(factors numbers) factors_rows",
    ];
    assert_eq!(nodes, expected);
}

#[test]
fn a_table_that_is_needed_as_a_whole_stays_as_it_is() {
    let is_unchanged = |graph: GraphProto| {
        let before = graph.node.len();
        let (nodes, shapes) = looked_up_first(graph);
        nodes[0] == "Cast(table) cast" && nodes.len() == before && shapes.len() == 4
    };
    // One factor for each number of the table.
    assert!(is_unchanged(graph(&[3, 2])));
    let mut used_twice = graph(&[1]);
    used_twice.node.push(node("MatMul", &["rows", "converted"], "product"));
    assert!(is_unchanged(used_twice));
    let mut result = graph(&[1]);
    result.output.push(value("cast"));
    assert!(is_unchanged(result));
    let mut columns = graph(&[1]);
    let axis = AttributeProto { name: Some("axis".to_owned()), i: Some(1), ..Default::default() };
    columns.node[2].attribute.push(axis);
    assert!(is_unchanged(columns));
    let mut unknown = graph(&[1]);
    unknown.node[0].op_type = Some("Neg".to_owned());
    let (nodes, _) = looked_up_first(unknown);
    assert_eq!(nodes[0], "Neg(table) cast");
    // Without its table the graph ends nowhere.
    let mut endless = graph(&[1]);
    endless.node[0].input = vec!["converted".to_owned()];
    looked_up_first(endless);
}

#[test]
fn the_numbers_are_the_same() {
    // The numbers of the table are larger than what stays in the description of the graph.
    let width = super::SMALL;
    for (factors, expected) in [(vec![1_i64], [3.0, 1.0]), (vec![3, 1], [9.0, 1.0])] {
        let mut graph = graph(&factors);
        let bytes = (1..=3).flat_map(|row| std::iter::repeat_n(row, width)).collect();
        graph.initializer[0] = tensor("table", &[3, width as i64], DataType::INT8, bytes);
        let model = ModelProto {
            ir_version: Some(8),
            graph: Some(graph),
            opset_import: vec![OperatorSetIdProto { domain: None, version: Some(17) }],
            ..ModelProto::default()
        };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&model.write_buf().unwrap()).unwrap();
        file.rewind().unwrap();
        let options = ModelOptions::with_ops(rten::op_registry!(Cast, Gather, Mul));
        let model = load(file, options).unwrap();
        let numbers = NdTensor::from_data([2], vec![2_i32, 0]);
        let input = (model.node_id("numbers").unwrap(), numbers.into());
        let [rows] = model.run_n(vec![input], [model.node_id("rows").unwrap()], None).unwrap();
        let rows: NdTensor<f32, 2> = rows.try_into().unwrap();
        assert_eq!(rows.shape(), [2, width]);
        assert_eq!([rows[[0, width - 1]], rows[[1, 0]]], expected);
    }
}
